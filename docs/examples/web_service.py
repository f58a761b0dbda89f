"""A web service with several worker processes on one store; start it with ``uvicorn --workers 2 web_service:service``.

Each request is a message of a chat. Requests of one chat are answered one after another, whichever worker process they
reach, and a chat goes on where it stood after a restart. Needs ``starlette`` and ``uvicorn``.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from hermes_core import SessionSource, open_app
from hermes_hookspecs.errors import InboxOverflow, LeaseBusy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from hermes_core import HermesApp
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
    """Return where a request comes from; a real service takes the user from its login."""
    return SessionSource(platform="api_server", chat_id=request.path_params["chat"], user_id=request.headers["x-user"])


async def say(request: Request) -> JSONResponse:
    """Answer a message; 503 where the chat is busy for too long, or too much waits there already."""
    message = await request.json()
    try:
        result = await request.app.state.sessions.ask_async(message["text"], source_of(request), agent=answer)
    except (LeaseBusy, InboxOverflow) as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse({"answer": result.text, "session": result.entry.session_id})


async def history(request: Request) -> JSONResponse:
    """Return what was said in a chat, oldest first."""
    sessions: HermesApp = request.app.state.sessions
    entry = await asyncio.to_thread(sessions.get_or_create_session, source_of(request))
    rows = await asyncio.to_thread(sessions.sessions.load_transcript, entry.session_id)
    return JSONResponse([{"role": row.role, "content": row.content} for row in rows])


service = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/chats/{chat}/messages", say, methods=["POST"]),
        Route("/chats/{chat}/messages", history, methods=["GET"]),
    ],
)
