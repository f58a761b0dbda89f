"""``hermes slack-scope``: what would become of every Slack route whose key holds no workspace."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import KeyBuildError
from hermes_slack_scope.claims import DIRECT, PLATFORM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import Route

__all__ = ["FIRST", "MOVES", "OUT_OF_REACH", "REFUSED", "STAYS", "Forecast", "forecasts", "run"]

MOVES = "moves"
FIRST = "first"
STAYS = "stays"
REFUSED = "refused"
OUT_OF_REACH = "out of reach"
_SAID = {
    MOVES: "with the next message from there",
    FIRST: "to the first workspace in which its person writes there, once",
    STAYS: "its workspace has another conversation there by now",
    REFUSED: "no workspace is recorded; it could be another tenant's",
    OUT_OF_REACH: "other settings made its key; hermes routes rekey",
}


@attrs.frozen(kw_only=True)
class Forecast:
    """What would become of one route.

    Attributes:
        verdict: one of the words above. new_key: where it would go, ``None`` where that is not known or nowhere.
    """

    route: Route
    verdict: str
    new_key: SessionKey | None

    @property
    def reason(self) -> str:
        """Return why, in words."""
        if self.verdict == FIRST and self.route.source.user_id is None:
            return "to the first workspace that writes there, once; no person is recorded"
        return _SAID[self.verdict]


def forecasts(app: App) -> Iterator[Forecast]:
    """Yield what would become of each live Slack route whose key holds no workspace, last used first."""
    for route in app.store.routes():
        if route.source.platform == PLATFORM and route.lineage_id is not None:
            found = _forecast(app, route)
            if found is not None:
                yield found


def _forecast(app: App, route: Route) -> Forecast | None:
    source = route.source
    own, bare = _key(app, route, source.scope_id), _key(app, route, None)
    if route.key == own and source.scope_id is not None:
        return None
    if route.key != bare:
        return Forecast(route=route, verdict=OUT_OF_REACH, new_key=own)
    if source.scope_id is not None:
        taken = own is not None and app.store.route(own) is not None
        return Forecast(route=route, verdict=STAYS if taken else MOVES, new_key=own)
    return Forecast(route=route, verdict=FIRST if source.chat_type == DIRECT else REFUSED, new_key=None)


def _key(app: App, route: Route, scope_id: str | None) -> SessionKey | None:
    try:
        return app.session_key(attrs.evolve(route.source, scope_id=scope_id))
    except KeyBuildError:
        return None


def run(call: CliCall) -> int:
    """Print the forecast: one line a route, and a count of each kind."""
    found = list(forecasts(call.app))
    if call.values["json"]:
        json.dump([_record(one) for one in found], call.out, ensure_ascii=False, indent=2)
        call.out.write("\n")
    else:
        for one in found:
            print(f"{one.verdict:<12}  {_line(one.route.key)}  {one.reason}", file=call.out)
    call.out.flush()
    counts = Counter(one.verdict for one in found)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _SAID if counts[verdict])
    print(f"{said}; nothing was changed" if found else "No Slack route without a workspace is live.", file=call.err)
    return 0


def _line(key: str) -> str:
    """Return a key as one line of plain text, whatever a broken grammar put into it."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in key)


def _record(one: Forecast) -> dict[str, object]:
    return {
        "session_key": one.route.key,
        "lineage_id": one.route.lineage_id,
        "scope_id": one.route.source.scope_id,
        "user_id": one.route.source.user_id,
        "chat_type": one.route.source.chat_type,
        "verdict": one.verdict,
        "new_session_key": one.new_key,
        "reason": one.reason,
    }
