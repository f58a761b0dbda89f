"""Rounds that alternate, what is taken from them, and the rows of the report."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Rounds = Mapping[str, Sequence["Timing"]]

__all__ = ["OURS", "PEER", "RAW", "Bounds", "Row", "Size", "Timing", "alternate", "clocked", "fact", "row", "timing"]

OURS, RAW, PEER = "ours", "raw", "peer"
_NS_PER_US = 1000.0


class Size(NamedTuple):
    """How much a run does. ``rounds``: of quick things; ``slow_rounds``: of those that take seconds each."""

    rounds: int
    slow_rounds: int
    messages_on_disk: int
    seconds: float
    is_quick: bool


class Timing(NamedTuple):
    """What one round saw: times of single calls in microseconds, and calls a second."""

    p50: float
    p99: float
    longest: float
    per_s: float


class Bounds(NamedTuple):
    """What is demanded of a row and what is aimed at; ``None`` where nothing is."""

    floor: float | None = None
    target: float | None = None


class Row(NamedTuple):
    """One line of the report.

    ``floor`` and ``target`` are bounds of ``ratio``, or of ``ours`` where ``judged`` says so. ``peer_ratio`` is how
    many times better than the original we are, whatever ``better`` says.
    """

    name: str
    ours: float
    reference: float | None
    ratio: float | None
    floor: float | None
    target: float | None
    unit: str
    rounds: int
    better: str
    judged: str
    peer: float | None = None
    peer_ratio: float | None = None
    peer_floor: float | None = None
    peer_target: float | None = None

    @property
    def verdict(self) -> str:
        """``target``, ``floor`` or ``MISSED``; ``-`` for a row without bounds."""
        value = self.ratio if self.judged == "ratio" else self.ours
        return _verdict(value, self.floor, self.target, is_high=self.better == "higher")

    @property
    def peer_verdict(self) -> str:
        """The same for the comparison with the original."""
        return _verdict(self.peer_ratio, self.peer_floor, self.peer_target, is_high=True)


def _verdict(value: float | None, floor: float | None, target: float | None, *, is_high: bool) -> str:
    def is_met(bound: float | None) -> bool:
        return value is not None and bound is not None and (value >= bound if is_high else value <= bound)

    if value is None or (floor is None and target is None):
        return "-"
    if is_met(target):
        return "target"
    return "floor" if is_met(floor) else "MISSED" if floor is not None else "below target"


def timing(nanoseconds: Sequence[int], elapsed_ns: int) -> Timing:
    """Summary of single calls (at least one) that took ``elapsed_ns`` together."""
    ordered = sorted(nanoseconds)

    def at(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] / _NS_PER_US

    return Timing(at(0.5), at(0.99), ordered[-1] / _NS_PER_US, len(ordered) / (elapsed_ns / 1e9))


def clocked(call: Callable[[int], object], count: int) -> Timing:
    """Call ``call(0)`` … ``call(count - 1)`` one after the other and time each."""
    clock = time.perf_counter_ns
    taken = []
    began = clock()
    for number in range(count):
        before = clock()
        call(number)
        taken.append(clock() - before)
    return timing(taken, clock() - began)


def alternate(rounds: int, contestants: Mapping[str, Callable[[], Timing]]) -> Rounds:
    """Let each contestant run once a round, in another order each time; one run of each before is thrown away."""
    order = list(contestants)
    for name in order:
        contestants[name]()
    seen: dict[str, list[Timing]] = {name: [] for name in order}
    for _ in range(rounds):
        for name in order:
            seen[name].append(contestants[name]())
        order.append(order.pop(0))
    return seen


def row(
    name: str,
    rounds: Rounds,
    metric: str,
    bounds: Bounds = Bounds(),  # noqa: B008 - a tuple cannot change
    peer_bounds: Bounds = Bounds(),  # noqa: B008 - the same
    *,
    unit: str = "us",
    judged: str = "ratio",
) -> Row:
    """A row of one metric. Ratios are medians of the ratios of the single rounds, which drift together.

    :param metric: a field of :class:`Timing`; of ``per_s`` more is better, of the others less.
    :param unit: ``us`` and ``ms`` are converted, anything else is only shown.
    """
    is_high = metric == "per_s"
    scale = {"ms": 1000.0}.get(unit, 1.0)
    values = {who: [getattr(each, metric) / scale for each in timings] for who, timings in rounds.items()}
    ours, raw, peer = values[OURS], values.get(RAW), values.get(PEER)
    ratio = median(mine / other for mine, other in zip(ours, raw, strict=True)) if raw else None
    better = None
    if peer:
        pairs = zip(ours, peer, strict=True)
        better = median(mine / other if is_high else other / mine for mine, other in pairs)
    return Row(
        name,
        ours=median(ours),
        reference=median(raw) if raw else None,
        ratio=ratio,
        floor=bounds.floor,
        target=bounds.target,
        unit=unit,
        rounds=len(ours),
        better="higher" if is_high else "lower",
        judged=judged,
        peer=median(peer) if peer else None,
        peer_ratio=better,
        peer_floor=peer_bounds.floor if peer else None,
        peer_target=peer_bounds.target if peer else None,
    )


def fact(
    name: str,
    ours: float,
    reference: float | None,
    *,
    unit: str,
    bounds: Bounds = Bounds(),  # noqa: B008 - a tuple cannot change
    judged: str = "ratio",
    rounds: int = 1,
    peer: float | None = None,
    peer_bounds: Bounds = Bounds(),  # noqa: B008 - the same
) -> Row:
    """A row of numbers that were counted, of which less is better."""
    return Row(
        name,
        ours=ours,
        reference=reference,
        ratio=ours / reference if reference else None,
        floor=bounds.floor,
        target=bounds.target,
        unit=unit,
        rounds=rounds,
        better="lower",
        judged=judged,
        peer=peer,
        peer_ratio=peer / ours if peer is not None and ours else None,
        peer_floor=None if peer is None else peer_bounds.floor,
        peer_target=None if peer is None else peer_bounds.target,
    )
