"""A conversation from as many entrances and processes as a test likes; ``python -m talking`` is another process.

Its plugins do what breaks a prompt's beginning wherever somebody relies on them: they say something else each time, in
another version, and in another order.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from itertools import count

from hermes_core import open_app
from hermes_hookspecs.errors import AgentFailed
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import Attachment, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.services import ContextPiece
from hermes_hookspecs.source import SessionSource

__all__ = ["Memory", "Sight", "Talk", "Tools", "as_bytes"]


class Memory:
    """A plugin whose pieces differ every time it is asked, and with its version."""

    def __init__(self, name, version=1):
        self.name, self.version, self._asked = name, version, count()

    @hookimpl
    def hermes_context_providers(self):
        return [self]

    async def pieces(self, opening, *, budget_tokens):
        text = f"v{self.version}, asked {next(self._asked)} times, of {len(opening.text)} characters"
        return [ContextPiece(label=self.name, text=text)]

    @hookimpl
    def hermes_system_prompt_parts(self, entry):
        return [f"{self.name} v{self.version}"]


class Sight:
    """A plugin that describes pictures, with its version."""

    name = "sight"
    kinds = ("image",)

    def __init__(self, version=1):
        self.version = version

    @hookimpl
    def hermes_attachment_describers(self):
        return [self]

    async def describe(self, attachment, data):
        return f"v{self.version} sees {len(data)} bytes"


class Tools:
    """A plugin with tools; another version says something else of them, has one more, and lists all the other way."""

    name = "tools"

    def __init__(self, version=1):
        self.version = version

    @hookimpl
    def hermes_tools(self):
        names = ["look", "count", *(["new"] if self.version > 1 else [])]
        return [_Tool(name, self.version) for name in (names if self.version == 1 else reversed(names))]


class _Tool:
    effect = "read"

    def __init__(self, name, version):
        self.name, self.version = name, version
        self.description = f"{name}, version {version}"
        fields = [("path", {"type": "string"}), ("most", {"type": "integer", "default": version})]
        properties = dict(fields if version == 1 else reversed(fields))
        self.parameters = {"type": "object", "properties": properties}
        if version > 1:
            self.parameters = dict(reversed(self.parameters.items()))

    async def call(self, arguments, turn):
        return f"{self.name} of version {self.version}"


class Speaker:
    """The agent of a conversation; where there are tools, with one of its own that changes with every upgrade."""

    name = "speaker"
    model = None

    def __init__(self, talk):
        self.run = talk.agent
        has_tools = any(one.startswith("tools") for one in talk.versions)
        version = 2 if any(one.endswith(":2") for one in talk.versions) else 1
        self.own_tools = (_Tool("recall", version),) if has_tools else ()


def as_bytes(turn):
    """Return what an agent sends, part by part: the tools, then each message; of a live picture its text form."""
    tools = [{"name": one.name, "about": one.description, "schema": one.parameters} for one in turn.tools.values()]
    parts = [json.dumps(tools)]
    for row in turn.messages:
        calls = [[call.id, call.name, call.arguments] for call in row.tool_calls]
        parts.append(json.dumps([row.role, row.content, calls, row.tool_call_id]))
    return parts


def _plugins(versions):
    """Return the plugins in this order: ``name:version`` each."""
    made = []
    for one in versions:
        name, _, version = one.partition(":")
        kinds = {"sight": Sight, "tools": Tools}
        made.append(kinds[name](int(version)) if name in kinds else Memory(name, int(version)))
    return made


class Talk:
    """One conversation.

    :ivar prompts: what was sent in each turn. live: places of attachments whose bytes were sent in each turn.
    :param versions: the plugins, in order of registering.
    """

    PLUGINS = ("alpha:1", "beta:1", "sight:1", "tools:1")

    def __init__(self, home, chat_type, versions=PLUGINS):
        self.home, self.chat_type, self.versions = str(home), chat_type, list(versions)
        self.prompts, self.live = [], []
        self.app = None

    def open(self):
        """Open the home, with the plugins of now."""
        if self.app is None:
            overrides = {"storage.durability": "normal"}
            self.app = open_app(self.home, overrides=overrides, plugins=False, environ={})
            for number, plugin in enumerate(_plugins(self.versions)):
                self.app.hooks.host.register(f"test.{number}", plugin)
        return self.app

    def close(self):
        """End what a process does here."""
        if self.app is not None:
            self.app.close()
            self.app = None

    def source(self, entrance):
        """Return where somebody speaks from."""
        if entrance == "cli":
            return SessionSource(platform="cli", chat_id="pts-1", user_id="me")
        who = entrance if self.chat_type == "thread" else "al"
        return SessionSource(
            platform="feishu",
            chat_type=self.chat_type,
            chat_id="oc_1",
            thread_id="t1",
            user_id=f"ou_{who}",
            user_name=f"{who} Smith",
        )

    def say(self, text, entrance, files=()):
        """Say something in the one conversation of the home."""
        app = self.open()
        entry = app.get_or_create_session(self.source("al"))
        attachments = tuple(self.attachment(*one) for one in files)
        with suppress(AgentFailed):
            app.ask(text, self.source(entrance), entry=entry, agent=Speaker(self), attachments=attachments)

    def compress(self):
        """Compress by hand; return whether the conversation goes on in a child."""
        app = self.open()
        entry = app.get_or_create_session(self.source("al"))
        report = asyncio.run(app.compress_session(entry.lineage_id, self.source("al")))
        return not report.refusal

    def attachment(self, kind, data):
        """Return an attachment whose bytes are kept; ``None``: they are gone."""
        name = None if data is None else self.app.attachments.put(data.encode())
        return Attachment(kind=kind, name=f"a.{kind}", media_type="text/plain", sha256=name)

    async def agent(self, turn):
        """Do what the text says."""
        self.prompts.append(as_bytes(turn))
        self.live.append([n for n, message in enumerate(turn.messages) if message.attachments])
        if turn.text.startswith("fail"):
            raise ValueError("broken")
        if turn.text.startswith("tools"):
            yield AssistantStep(tool_calls=(ToolCall(id="a", name="look"), ToolCall(id="b", name="count")))
            yield ToolResult(call_id="b", name="count", content="42")
        if turn.text.startswith("silent"):
            return
        yield AssistantStep(content=f"heard {len(turn.text)}")


def main():
    """Say what each line of the standard input asks for; answer with what was sent."""
    for line in sys.stdin:
        order = json.loads(line)
        talk = Talk(order["home"], order["chat_type"], order["versions"])
        try:
            talk.say(order["text"], order["entrance"], order["files"])
        finally:
            talk.close()
        print(json.dumps({"prompts": talk.prompts, "live": talk.live}), flush=True)


if __name__ == "__main__":
    main()
