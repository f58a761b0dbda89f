"""A web service with several worker processes on one store.

Needs ``starlette`` and ``uvicorn``::

    cd docs/examples && uvicorn --workers 2 --port 8000 web_service:service
    curl localhost:8000/chats/kitchen/messages -H 'x-user: ming' --json '{"text": "Is there tea?"}'
    curl localhost:8000/chats/kitchen/messages -H 'x-user: ming'

Each request is a message of a chat. Requests of one chat are answered one after another, whichever worker process they
reach, and a chat goes on where it stood after a restart. Chats belong to their user: ``kitchen`` of another one is
another chat.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from hermes_core import SessionSource, open_app
from hermes_hookspecs.errors import InboxOverflow, LeaseBusy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request

    from hermes_core import HermesApp
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.agent import TurnContext

UPKEEP_S = 30


async def answer(turn: TurnContext) -> str:
    """Answer one message; a call of a model would stand here."""
    said = sum(1 for message in turn.messages if message.role == "user")
    return f"{said}: {turn.text}"


async def keep_up(sessions: HermesApp) -> None:
    """Do now and then what a gateway would: close what dead processes left, let old rows go."""
    while True:
        await asyncio.to_thread(sessions.maintain)
        await asyncio.sleep(UPKEEP_S)


@asynccontextmanager
async def lifespan(service: Starlette) -> AsyncIterator[None]:
    """Open the store once a worker process; a child that is forked later could not use it."""
    with open_app() as sessions:
        service.state.sessions = sessions
        upkeep = asyncio.create_task(keep_up(sessions))
        yield
        upkeep.cancel()
        with suppress(asyncio.CancelledError):
            await upkeep


def source_of(request: Request) -> SessionSource:
    """Return where a request comes from: a chat of one user. :raises HTTPException: it does not say whose.

    A real service takes the user from its login, never from a header that anybody can write.
    """
    user = request.headers.get("x-user", "")
    if not user:
        raise HTTPException(400, "the header x-user is missing")
    # The user is part of the chat's id, encoded, so that no user and chat together read like those of somebody else.
    chat = f"{quote(user, safe='')}/{request.path_params['chat']}"
    return SessionSource(platform="api_server", chat_id=chat, user_id=user)


async def text_of(request: Request) -> str:
    """Return what is said. :raises HTTPException: the body is not ``{"text": "..."}``."""
    try:
        text = (await request.json())["text"]
    except (ValueError, KeyError, TypeError) as error:
        raise HTTPException(400, 'the body is not {"text": "..."}') from error
    if not isinstance(text, str):
        raise HTTPException(400, "text is no text")
    return text


async def say(request: Request) -> JSONResponse:
    """Answer a message; 503 where the chat is busy for too long, or too much waits there already."""
    source, text = source_of(request), await text_of(request)
    try:
        result = await request.app.state.sessions.ask_async(text, source, agent=answer)
    except LeaseBusy as error:  # what it says names host and process of whoever is busy: nothing for a client
        raise HTTPException(503, "this chat is busy; send the message again later") from error
    except InboxOverflow as error:
        raise HTTPException(503, str(error)) from error
    return JSONResponse({"answer": result.text, "session": result.entry.session_id})


async def history(request: Request) -> JSONResponse:
    """Return what was said in a chat, oldest first; nothing where nobody spoke, and no session is made for that."""
    source, sessions = source_of(request), request.app.state.sessions
    rows = await asyncio.to_thread(rows_of, sessions, source)
    return JSONResponse([{"role": row.role, "content": row.content} for row in rows])


def rows_of(sessions: HermesApp, source: SessionSource) -> Sequence[Message]:
    """Return the rows that the user of a source may see where its key leads."""
    route = sessions.store.route(sessions.session_key(source))
    if route is None or route.lineage_id is None:
        return ()
    return sessions.store.messages(route.lineage_id, sessions.principal(source))


service = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/chats/{chat}/messages", say, methods=["POST"]),
        Route("/chats/{chat}/messages", history, methods=["GET"]),
    ],
)
