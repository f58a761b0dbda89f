"""``hermes routes list`` and ``hermes routes explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import clip, clip_middle, layout
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.terminal import PLATFORM
from hermes_cli.times import ago, utc_time
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import DEFAULT_ACCOUNT, SessionSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.sessions import Lineage, Route

__all__ = ["DEFAULT_LIMIT", "explain", "list_routes"]

DEFAULT_LIMIT = 50
_WIDE = 110
"""Columns of a terminal from which on there is room for titles beside keys."""
_TITLE = 28
"""Most columns of a title there."""


def list_routes(call: CliCall) -> int:
    """Print routes, last used first: the key, and the session it leads to; those of terminals only when asked for."""
    store = call.app.store
    limit = call.values["limit"]
    everything = bool(call.values["all"])
    most = limit if isinstance(limit, int) else None if everything else DEFAULT_LIMIT
    routes = store.routes()
    wanted = [route for route in routes if everything or route.source.platform != PLATFORM]
    terminals = len(routes) - len(wanted)
    older = 0 if most is None else max(len(wanted) - most, 0)
    found = []
    for route in wanted[:most]:
        lineage = None if route.lineage_id is None else store.lineage(route.lineage_id, operator())
        found.append((route, lineage))
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(route, lineage) for route, lineage in found])
    elif found:
        for line in _table(call, found):
            print(line, file=call.out)
    elif not terminals:
        print("No routes yet; the first message of a chat or a terminal makes one.", file=call.err)
    call.out.flush()
    for line in _left_out(older, terminals):
        print(line, file=call.err)
    return 0


def _left_out(older: int, terminals: int) -> Iterator[str]:
    """Yield what the list does not show, and how to see it."""
    if older:
        yield f"{older} more (--limit shows more)"
    if terminals:
        yield f"{terminals} of terminals (--all shows {'it' if terminals == 1 else 'them'})"


def _table(call: CliCall, found: Sequence[tuple[Route, Lineage | None]]) -> list[str]:
    """Return the lines of the list; on a terminal the key gives way, and a title is shown where it is wide."""
    width = call.width
    now = call.app.clock.now()
    rows = [["KEY", "SESSION", "LAST USED", "TITLE"]]
    for route, lineage in found:
        when = utc_time(route.updated_at) if width is None else ago(now, route.updated_at)
        session = "-" if lineage is None else safe_line(lineage.tip)
        title = safe_line((route.pending_title if lineage is None else lineage.title) or "-")
        if width is not None:
            title = clip(title, _TITLE)
        rows.append([safe_line(route.key), session, when, title])
    if width is not None and width < _WIDE:
        rows = [row[:3] for row in rows]
    return layout(rows, width=width, giving=0, cut=clip_middle)


def _record(route: Route, lineage: Lineage | None) -> dict[str, object]:
    source = route.source
    return {
        "session_key": route.key,
        "session_id": None if lineage is None else lineage.tip,
        "lineage_id": route.lineage_id,
        "title": None if lineage is None else lineage.title,
        "pending_title": route.pending_title,
        "source": source.platform,
        "account_id": source.account_id,
        "chat_type": source.chat_type,
        "scope_id": source.scope_id,
        "chat_id": source.chat_id,
        "thread_id": source.thread_id,
        "user_id": source.user_id,
        "user_id_alt": source.user_id_alt,
        "profile": source.profile,
        "key_version": route.key_version,
        "group_sessions_per_user": route.policy.group_sessions_per_user,
        "thread_sessions_per_user": route.policy.thread_sessions_per_user,
        "created_at": route.created_at,
        "updated_at": route.updated_at,
    }


def explain(call: CliCall) -> int:
    """Print why a message lands where it lands: of a key, of a described source, or of this terminal."""
    explained = call.app.explain_route(_source(call))
    if call.values["json"]:
        from hermes_cli.records import print_json

        lineage = explained.lineage
        print_json(
            call.out,
            {
                "session_key": explained.key,
                "session_id": explained.session_id,
                "lineage_id": None if lineage is None else lineage.id,
                "title": None if lineage is None else lineage.title,
                "reasons": [{"name": name, "value": value} for name, value in explained.lines],
            },
        )
        return 0
    # The first blanks of a name are the core's: parts of the key stand under it.
    rows = [[safe_text(name), safe_line(value)] for name, value in explained.lines]
    for line in layout(rows, width=None, giving=1):
        print(line, file=call.out)
    return 0


def _text(call: CliCall, name: str) -> str | None:
    value = call.values[name]
    return value if isinstance(value, str) else None


def _source(call: CliCall) -> SessionSource:
    key, platform = _text(call, "key"), _text(call, "platform")
    described = any(_text(call, name) for name in ("account", "scope", "chat", "thread", "user", "user_alt"))
    if key is not None:
        if platform is not None or described:
            raise HermesError("give a key or describe a source, not both")
        route = call.app.store.route(SessionKey(key))
        if route is None:
            raise HermesError(f"no route has the key {key!r}; `hermes routes list` shows what there is")
        return route.source
    if platform is None and not described:
        from hermes_cli.terminal import terminal_source, transient_source

        return terminal_source() or transient_source()
    return SessionSource(
        platform=platform or "cli",
        chat_type=_text(call, "chat_type") or "dm",
        account_id=_text(call, "account") or DEFAULT_ACCOUNT,
        scope_id=_text(call, "scope"),
        chat_id=_text(call, "chat"),
        thread_id=_text(call, "thread"),
        user_id=_text(call, "user"),
        user_id_alt=_text(call, "user_alt"),
    )
