"""The rows as a table for people and as JSON for everything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.measuring import Row

__all__ = ["as_json", "table"]

_HEAD = ("", "ours", "raw", "ratio", "floor", "target", "unit", "rounds", "reached")
_PEER_HEAD = ("original", "times better", "floor", "target", "reached")
_BIG = 100.0


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table; columns of the original only where one of the rows has it."""
    has_peer = any(row.peer is not None for row in rows)
    cells = [[*_HEAD, *(_PEER_HEAD if has_peer else ())]]
    for row in rows:
        sign = ">=" if row.better == "higher" else "<="
        unit = f" {row.unit}" if row.judged == "ours" else "x"
        line = [
            row.name,
            _number(row.ours),
            _number(row.reference),
            _number(row.ratio, "x"),
            _bound(row.floor, sign, unit),
            _bound(row.target, sign, unit),
            row.unit,
            str(row.rounds),
            row.verdict,
        ]
        if has_peer:
            line += [
                _number(row.peer),
                _number(row.peer_ratio, "x"),
                _bound(row.peer_floor, ">=", "x"),
                _bound(row.peer_target, ">=", "x"),
                row.peer_verdict,
            ]
        cells.append(line)
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return [_line(line, widths) for line in cells]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if place else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()


def _number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}{unit}" if value >= _BIG or value == int(value) else f"{value:.3g}{unit}"


def _bound(value: float | None, sign: str, unit: str) -> str:
    return "-" if value is None else f"{sign}{value:g}{unit}"


def as_json(rows: Iterable[Row]) -> str:
    """A JSON array, one object a line; numbers have four digits, more would only be noise."""
    lines = []
    for row in rows:
        cells: dict[str, object] = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row._asdict().items()
        }
        cells["reached"] = row.verdict
        if row.peer is None:
            cells = {name: value for name, value in cells.items() if not name.startswith("peer")}
        else:
            cells["peer_reached"] = row.peer_verdict
        lines.append(json.dumps(cells))
    return "[\n" + ",\n".join(lines) + "\n]\n"
