"""The agent: asks the model, runs the tools that it asks for, asks again, until there is an answer or a limit."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError, ContextOverflow
from hermes_hookspecs.messages import KIND_ATTACHMENTS
from hermes_hookspecs.ports.agent import AssistantStep, UsageReport
from hermes_hookspecs.toolbox import Toolbox
from hermes_openai.endpoint import Endpoint
from hermes_openai.help import what_is_missing
from hermes_openai.keys import key_of
from hermes_openai.media import media_parts
from hermes_openai.prompt import assistant_message, result_message, user_message, wire_messages, wire_tools
from hermes_openai.reply import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.ports.agent import AgentEvent, Tool, TurnContext
    from hermes_hookspecs.turns import Usage
    from hermes_openai.config import OpenAIConfig
    from hermes_openai.endpoint import Line
    from hermes_openai.media import Wire

__all__ = ["OpenAIAgent"]


class OpenAIAgent:
    """Answers with a model behind an OpenAI-compatible endpoint.

    :param environ: where the key is looked for; the process's own when not given.
    :param sleep: waits before a repetition.
    """

    name = "openai"
    steers = True
    """It asks for what came meanwhile behind the results of each row."""

    def __init__(
        self,
        config: OpenAIConfig,
        *,
        environ: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.model: str | None = config.model or None
        self._config = config
        self._environ = os.environ if environ is None else environ
        self._sleep = sleep
        self._told_tokens: int | None = None

    @property
    def context_tokens(self) -> int | None:
        """What the model can read: as configured, else as the endpoint said when it was too much; ``None``: unknown."""
        return self._config.context_tokens or self._told_tokens

    @property
    def setup(self) -> str:
        """One line that says what keeps it from answering, ``""`` when it is ready. Reads the file of the key."""
        try:
            return what_is_missing(self._config, key_of(self._config, self._environ))
        except ConfigError as error:
            return what_is_missing(self._config, error)

    @property
    def ready(self) -> bool:
        """Whether it is configured, and so answers where nobody chose another agent."""
        return not self.setup

    @cached_property
    def own_tools(self) -> tuple[Tool, ...]:
        """Tools that come with it: the search of earlier conversations, files; unless the settings forbid them."""
        from hermes_hookspecs.send_file import send_file
        from hermes_hookspecs.session_search import session_search

        offered = ((self._config.session_search, session_search), (self._config.send_files, send_file))
        return tuple(tool for wanted, tool in offered if wanted)

    @cached_property
    def endpoint(self) -> Endpoint:
        """Where it asks. :raises ConfigError: the agent is not configured; says how that is done."""
        if missing := self.setup:
            raise ConfigError(missing, section="plugins.openai", key="model" if self.model is None else "key_env")
        return Endpoint(self._config, key_of(self._config, self._environ), sleep=self._sleep)

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the steps of one turn.

        :raises ConfigError: not configured. :raises ContextOverflow: the prompt is too long. :raises AuthFailed: the
            key is refused. :raises RetryLater: the endpoint was asked in vain. :raises Rejected: it will not do it.
        """
        effort = _Effort(self._config)
        box = Toolbox(turn, timeout_s=self._config.tool_timeout_s, most_calls=self._config.max_calls)
        body = self._body(box)
        messages = await self._messages(turn)
        body["messages"] = messages
        async with self.endpoint.line() as line:
            while True:
                async with aclosing(self._ask(line, body, effort)) as events:
                    async for event in events:
                        if not isinstance(event, Reply):
                            yield event
                            continue
                        reply, usage = event, self._config.priced(event.usage(self._config.model))
                        effort.spend(usage)
                        yield UsageReport(usage=usage)
                calls = box.calls(reply.calls) if reply.fault is None else ()
                if not calls or effort.is_over:
                    yield effort.last_step(reply, usage)
                    if reply.fault is not None:
                        raise reply.fault
                    return
                yield _step(reply, calls, usage)
                messages.append(assistant_message(reply.text, calls, reply.reasoning, self._config.reasoning_field))
                async with aclosing(box.run(calls, within_s=effort.left_s)) as results:
                    async for result in results:
                        yield result
                        messages.append(result_message(result.call_id, result.content))
                if steered := box.steered():
                    messages.append(user_message(steered))

    async def _ask(
        self, line: Line, body: dict[str, object], effort: _Effort
    ) -> AsyncGenerator[AgentEvent | Reply, None]:
        """Ask once; the last request that the limits allow is for an answer, not for calls."""
        effort.steps += 1
        asked = body | {"tool_choice": "none"} if effort.is_over and "tools" in body else body
        try:
            async with aclosing(line.ask(asked, deadline=effort.deadline)) as events:
                async for event in events:
                    yield event
        except ContextOverflow as error:
            self._told_tokens = error.limit_tokens or self._told_tokens
            raise

    async def _messages(self, turn: TurnContext) -> list[Wire]:
        """Return the window as it is sent; attachments of this turn as they are, where the model takes them."""
        config, files, media = self._config, turn.files, {}
        if config.inputs and files is not None and self.endpoint.takes_media:
            places = [
                (place, row.attachments)
                for place, row in enumerate(turn.messages)
                if row.kind == KIND_ATTACHMENTS and row.attachments
            ]
            for place, attachments in places:
                media[place] = await asyncio.to_thread(
                    media_parts, attachments, files, kinds=config.inputs, most_bytes=config.input_bytes
                )
        return wire_messages(turn.messages, reasoning_field=config.reasoning_field, media=media)

    def _body(self, box: Toolbox) -> dict[str, object]:
        """Return the request without what the turn adds to it."""
        body: dict[str, object] = {"model": self._config.model, "messages": []}
        if box.tools:
            body["tools"] = wire_tools(box.tools)
        if self._config.temperature is not None:
            body["temperature"] = self._config.temperature
        return body


class _Effort:
    """What a turn has taken so far, and may take."""

    def __init__(self, config: OpenAIConfig) -> None:
        self.steps = 0
        self.tokens = 0
        self._config = config
        self._now = asyncio.get_running_loop().time
        self.deadline = self._now() + config.turn_timeout_s

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - self._now())

    @property
    def is_over(self) -> bool:
        return bool(self.limit)

    @property
    def limit(self) -> str:
        """What is used up, ``""`` while nothing is."""
        config = self._config
        if self.steps >= config.max_steps:
            return f"{self.steps} requests (max_steps)"
        if config.turn_tokens and self.tokens >= config.turn_tokens:
            return f"{self.tokens} tokens (turn_tokens)"
        return "" if self.left_s else f"{config.turn_timeout_s:g} s (turn_timeout_s)"

    def spend(self, usage: Usage) -> None:
        self.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)

    def last_step(self, reply: Reply, usage: Usage) -> AssistantStep:
        """Return the step that ends the turn; where a limit ended it, it says so."""
        if not reply.calls or reply.fault is not None:
            return _step(reply, (), usage, "cut" if reply.fault is not None else None)
        note = f"[I stopped here: this turn has used up its {self.limit}. Tell me to go on if I should.]"
        text = f"{reply.text}\n\n{note}" if reply.text.strip() else note
        return AssistantStep(
            content=text, reasoning=reply.reasoning, finish_reason="limit", token_count=usage.output_tokens
        )


def _step(reply: Reply, calls: tuple[ToolCall, ...], usage: Usage, reason: str | None = None) -> AssistantStep:
    return AssistantStep(
        content=reply.text,
        tool_calls=calls,
        reasoning=reply.reasoning,
        finish_reason=reason or reply.finish_reason or ("tool_calls" if calls else "stop"),
        token_count=usage.output_tokens,
    )
