"""One question, one answer: what is asked beside a conversation, without tools and without a stream to show."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import Rejected
from hermes_hookspecs.metering import report_usage
from hermes_openai.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_openai.endpoint import Endpoint
    from hermes_openai.media import Wire

__all__ = ["answer_to"]


async def answer_to(endpoint: Endpoint, model: str, messages: Sequence[Wire], *, within_s: float) -> str:
    """Return a model's answer, without white space around it; what it took is reported.

    :raises HermesError: there is none, see :mod:`hermes_openai.failures`; also where it was cut.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    body: dict[str, object] = {"model": model, "messages": list(messages)}
    answer: Reply | None = None
    async with endpoint.line() as line, aclosing(line.ask(body, deadline=deadline)) as events:
        async for event in events:
            if isinstance(event, Reply):
                report_usage(endpoint.config.priced(event.usage(model)))
                answer = answer if event.dropped else event
    if answer is not None and answer.fault is not None:
        raise answer.fault
    if answer is None or not answer.text.strip():
        raise Rejected("the model gave an empty answer")
    return answer.text.strip()
