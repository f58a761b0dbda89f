"""The state of a gateway as Prometheus reads it. No metric holds a text, an id of a person, or a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from hermes_core.gateway.board import Board
    from hermes_hookspecs.ports.gateway import AccountStatus
    from hermes_hookspecs.sessions import StoreStats

    Sample: TypeAlias = tuple[Mapping[str, str], float]

__all__ = ["metrics"]

_STATES: Final = ("connecting", "connected", "waiting", "failed", "elsewhere")
_MESSAGES: Final = ("accepted", "duplicates", "refused", "unaddressed")
_DELIVERIES: Final = ("sent", "deferred", "failed")


def metrics(board: Board, stats: StoreStats | None, outbox: Mapping[str, int]) -> str:
    """Return everything in the text format 0.0.4.

    :param stats: of the store, ``None`` where it does not answer: what it counts is left out then.
    """
    accounts = [(one, _named(one)) for one in board.accounts()]
    lines = [
        *_metric("start_time_seconds", "gauge", "When the process began.", [({}, board.started_at / 1000)]),
        *_metric(
            "account_state",
            "gauge",
            "1 for the state that an account is in.",
            [({**labels, "state": state}, float(one.state == state)) for one, labels in accounts for state in _STATES],
        ),
        *_metric(
            "account_heard_seconds",
            "gauge",
            "When the platform was heard last.",
            [(labels, one.heard_at / 1000) for one, labels in accounts if one.heard_at is not None],
        ),
        *_metric(
            "adapter_starts_total", "counter", "Runs of an adapter.", [(labels, one.starts) for one, labels in accounts]
        ),
        *_metric(
            "messages_total",
            "counter",
            "Messages that came, by what became of them.",
            [({**labels, "result": name}, getattr(one, name)) for one, labels in accounts for name in _MESSAGES],
        ),
        *_metric(
            "deliveries_total",
            "counter",
            "Answers, by what became of them.",
            [({**labels, "status": name}, getattr(one, name)) for one, labels in accounts for name in _DELIVERIES],
        ),
        *_metric(
            "turns_total",
            "counter",
            "Turns that ended here.",
            [({"outcome": outcome}, count) for outcome, count in sorted(board.turns.items())],
        ),
    ]
    if stats is not None:
        lines += _metric("inbox_waiting", "gauge", "Messages that wait for their turn.", [({}, stats.waiting)])
        lines += _metric("sessions", "gauge", "Sessions in the store.", [({}, stats.sessions)])
        lines += _metric(
            "outbox", "gauge", "Answers that are not sent.", [({"status": name}, n) for name, n in outbox.items()]
        )
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, text: str, samples: Iterable[Sample]) -> list[str]:
    full = f"hermes_gateway_{name}"
    lines = [f"{full}{_labels(labels)} {value:.15g}" for labels, value in samples]
    return [f"# HELP {full} {text}", f"# TYPE {full} {kind}", *lines] if lines else []


def _named(one: AccountStatus) -> dict[str, str]:
    return {"platform": one.entrance.platform, "account": one.entrance.account_id}


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
