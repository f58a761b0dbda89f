"""The typed facade of the hooks: the only caller of pluggy's hook attribute.

Plugins are loaded when a hook is first needed, so a command that needs none pays for none. Provider hooks are asked
once and remembered. Decision hooks run where they are called. Event hooks run behind the caller's back, one after
another on one thread, on frozen values, each call at most :data:`EVENT_LIMIT_S` long.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

from hermes_hookspecs.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.events import EventThread
    from hermes_core.plugins.host import PluginHost
    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.commands import Command
    from hermes_hookspecs.ids import LineageId, TurnId
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.operations import Claim
    from hermes_hookspecs.ports.agent import Agent, Tool
    from hermes_hookspecs.ports.platform import Platform
    from hermes_hookspecs.ports.policies import Activity, CompressionPolicy, KeyBuilder, ResetPolicy, Summariser
    from hermes_hookspecs.ports.search import SearchSource
    from hermes_hookspecs.ports.services import AttachmentDescriber, AttachmentStore, ContextProvider, Titler
    from hermes_hookspecs.ports.store import StoreBackend
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import KeyPolicy, SessionSource
    from hermes_hookspecs.specs.decisions import AccessDecision
    from hermes_hookspecs.turns import Turn

__all__ = ["EVENT_LIMIT_S", "Hooks"]

EVENT_LIMIT_S = 10.0
"""Seconds after which an event hook that does not return is left behind."""
_ENDS_KNOWN = 4096
"""Turns whose end was told, so that it is not told again."""


class Hooks:
    """All hooks of one open profile.

    :param load: makes the plugin host; called once, by whoever needs a hook first.
    """

    def __init__(self, load: Callable[[], PluginHost]) -> None:
        self._load = load
        self._host: PluginHost | None = None
        self._lock = RLock()
        self._provided: dict[str, object] = {}
        self._events: EventThread | None = None
        self._closed = False
        self._ended: dict[TurnId, None] = {}

    @property
    def host(self) -> PluginHost:
        """Return the plugin host; the first call loads the plugins and blocks."""
        if self._host is None:
            with self._lock:
                if self._host is None:
                    self._host = self._load()
        return self._host

    @property
    def loaded(self) -> bool:
        """Return whether the plugins are loaded already."""
        return self._host is not None

    # --- providers, asked once

    def key_builder(self) -> KeyBuilder:
        """Return the key builder in force."""
        found: KeyBuilder = self._once("hermes_key_builder")
        return found

    def store_backends(self) -> dict[str, StoreBackend]:
        """Return the kinds of store by name. :raises PluginError: one name twice."""
        found: dict[str, StoreBackend] = _by_name(
            "hermes_store_backends", self._joined("hermes_store_backends"), twice=False
        )
        return found

    def agents(self) -> dict[str, Agent]:
        """Return the agents by name; of two with one name the plugin asked first has it."""
        found: dict[str, Agent] = _by_name("hermes_agents", self._joined("hermes_agents"))
        return found

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name; of two with one name the plugin asked first has it."""
        found: dict[str, Tool] = _by_name("hermes_tools", self._joined("hermes_tools"))
        return found

    def commands(self) -> dict[str, Command]:
        """Return the slash commands by name; of two with one name the plugin asked first has it."""
        found: dict[str, Command] = _by_name("hermes_commands", self._joined("hermes_commands"))
        return found

    def reset_policies(self) -> dict[str, ResetPolicy]:
        """Return the reset policies by name. :raises PluginError: one name twice."""
        found: dict[str, ResetPolicy] = _by_name(
            "hermes_reset_policies", self._joined("hermes_reset_policies"), twice=False
        )
        return found

    def search_sources(self) -> Sequence[SearchSource]:
        """Return the kinds of search index of all plugins, in order of asking."""
        found: Sequence[SearchSource] = self._joined("hermes_search_sources")
        return found

    def compression_policies(self) -> Sequence[CompressionPolicy]:
        """Return the plugins' compression policies, in order of asking."""
        found: Sequence[CompressionPolicy] = self._joined("hermes_compression_policies")
        return found

    def summarisers(self) -> Sequence[Summariser]:
        """Return the plugins' summarisers, in order of asking."""
        found: Sequence[Summariser] = self._joined("hermes_summarisers")
        return found

    def titlers(self) -> Sequence[Titler]:
        """Return the plugins' titlers, in order of asking."""
        found: Sequence[Titler] = self._joined("hermes_titlers")
        return found

    def cli_commands(self) -> Sequence[CliCommand]:
        """Return the command line commands of all plugins, in order of asking."""
        found: Sequence[CliCommand] = self._joined("hermes_cli_commands")
        return found

    def platforms(self) -> dict[str, Platform]:
        """Return the chat platforms by name; of two with one name the plugin asked first has it."""
        found: dict[str, Platform] = _by_name("hermes_platforms", self._joined("hermes_platforms"))
        return found

    def attachment_store(self, folder: str) -> AttachmentStore | None:
        """Return where a plugin keeps the bytes of attachments, ``None`` for the built-in folder.

        :raises PluginError: the plugin failed.
        """
        found: AttachmentStore | None = self._once("hermes_attachment_store", folder=folder)
        return found

    def attachment_describers(self) -> Sequence[AttachmentDescriber]:
        """Return what turns attachments into text, in order of asking."""
        found: Sequence[AttachmentDescriber] = self._joined("hermes_attachment_describers")
        return found

    def context_providers(self) -> Sequence[ContextProvider]:
        """Return the context providers of all plugins, in order of asking."""
        found: Sequence[ContextProvider] = self._joined("hermes_context_providers")
        return found

    # --- decisions

    def legacy_claims(self, source: SessionSource, policy: KeyPolicy) -> tuple[Claim, ...]:
        """Return the older keys whose route a message may take over, best first."""
        return tuple(_flat(self._call("hermes_legacy_claims", source=source, policy=policy, keys=self.key_builder())))

    def decide_access(self, event: MessageEvent) -> AccessDecision | None:
        """Return whether a sender may talk to us, ``None`` where no plugin says.

        :raises PluginError: a plugin failed; the message is refused.
        """
        found: AccessDecision | None = self._call("hermes_decide_access", event=event)
        return found

    def redact_inbound(self, text: str, source: SessionSource) -> str:
        """Return ``text`` as every plugin in turn leaves it.

        :raises PluginError: a plugin failed; the message is refused.
        """
        for implementation in reversed(self._implementations("hermes_redact_inbound")):
            if implementation.wrapper or implementation.hookwrapper:
                raise PluginError(implementation.plugin_name, "call", "redaction takes no wrappers")
            changed = implementation.function(**_wanted(implementation, {"text": text, "source": source}))
            text = text if changed is None else changed
        return text

    def background_activity(self, lineage_id: LineageId) -> tuple[Activity, ...]:
        """Return what runs for a lineage while nobody talks. :raises PluginError: a plugin could not say."""
        return tuple(_flat(self._call("hermes_background_activity", lineage_id=lineage_id)))

    def system_prompt_parts(self, entry: SessionEntry) -> tuple[str, ...]:
        """Return the parts of a new session's system text, in order of asking."""
        return tuple(_flat(self._call("hermes_system_prompt_parts", entry=entry)))

    # --- events

    def fire(self, name: str, /, **values: object) -> None:
        """Tell an event to every plugin that listens; returns at once, raises nothing."""
        if not self._implementations(name):
            return
        with self._lock:
            if self._closed:
                return
            if self._events is None:
                from hermes_core.events import EventThread

                self._events = EventThread(EVENT_LIMIT_S)
        self._events.post(name, lambda: _hear(self._call(name, **values)))

    def turn_ended(self, turn: Turn) -> None:
        """Tell the end of a turn; once in this process, however many of it notice the end.

        A process that stood still longer than its lease may close its own turn as a dead one, and then find in that
        turn that the lease is lost.
        """
        if not self._implementations("hermes_after_turn_finish"):
            return
        with self._lock:
            if turn.id in self._ended:
                return
            self._ended[turn.id] = None
            while len(self._ended) > _ENDS_KNOWN:
                del self._ended[next(iter(self._ended))]
        self.fire("hermes_after_turn_finish", turn=turn)

    def is_heard(self, name: str) -> bool:
        """Return whether any plugin listens to an event: telling it may cost its teller something."""
        return bool(self._implementations(name))

    def flush(self) -> None:
        """Wait until what was told is heard, within the time limit."""
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        """Let what was told be heard, within the time limit; nothing is told from now on."""
        with self._lock:
            self._closed = True
        if self._events is not None:
            self._events.close()

    # --- pluggy

    def _call(self, name: str, **values: object) -> Any:
        return getattr(self.host.manager.hook, name)(**values)

    def _implementations(self, name: str) -> list[Any]:
        found: list[Any] = getattr(self.host.manager.hook, name).get_hookimpls()
        return found

    def _once(self, name: str, **values: object) -> Any:
        with self._lock:
            if name not in self._provided:
                self._provided[name] = self._call(name, **values)
            return self._provided[name]

    def _joined(self, name: str) -> Any:
        with self._lock:
            if name not in self._provided:
                self._provided[name] = tuple(_flat(self._call(name)))
            return self._provided[name]


def _hear(results: Any) -> None:
    """Run what asynchronous listeners returned, on a loop of their own; the guard keeps their failures apart."""
    from inspect import iscoroutine

    waiting = [result for result in results if iscoroutine(result)]
    if waiting:
        import asyncio

        async def run() -> None:
            for coroutine in waiting:
                await coroutine

        asyncio.run(run())


def _flat(results: Any) -> list[Any]:
    """Return the items of all lists that the plugins gave, in order of asking."""
    return [item for result in results for item in result]


def _wanted(implementation: Any, values: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name in implementation.argnames}


def _by_name(hook: str, items: Any, *, twice: bool = True) -> Any:
    """Return items by their ``name``, the first of each name; with ``twice=False`` a second one is an error."""
    found: dict[str, Any] = {}
    for item in items:
        if item.name in found and not twice:
            raise PluginError(item.name, "register", f"two plugins give {item.name!r} to {hook}; disable one of them")
        found.setdefault(item.name, item)
    return found
