"""``hermes doctor``: is the store sound, who is stuck, what is left over; with ``--fix`` what can be is put right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.answers import StatusLine
from hermes_cli.columns import display_width, wrap
from hermes_cli.log_lines import muted
from hermes_cli.safe_text import safe_line
from hermes_cli.streams import width_of
from hermes_cli.times import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.care import Finding, StoreHealth
    from hermes_hookspecs.ports.desks import Examination

__all__ = ["run"]

_ORDER = ("error", "warning", "note")
_WORK = {
    "integrity": "reading the whole file",
    "rows": "comparing the rows",
    "copy": "copying the store",
    "repair": "putting it right",
}
"""What a status line says of steps that may take long."""
_MARGIN = 10
"""Columns of the first word of a line."""


def run(call: CliCall) -> int:
    """Print what was found; status 1 where an error or a warning is left."""
    status = StatusLine(call.err, width_of(call.err))

    def progress(name: str) -> None:
        status.show(f"{_WORK.get(name, f'looking at {name}')} …")

    try:
        with muted():  # a plugin that fails is a finding, told once
            care = call.app.care
            result = care.repair(progress=progress) if call.values["fix"] else care.examine(progress=progress)
    finally:
        status.clear()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, _record(result))
    else:
        for line in _lines(result):
            for each in _fitted(line, call.width):
                print(each, file=call.out)
    return 0 if _is_sound(result) else 1


def _is_sound(result: Examination) -> bool:
    return not result.damage and all(finding.severity == "note" for finding in result.findings)


def _lines(result: Examination) -> Iterator[str]:
    yield _line("store", f"{safe_line(result.location)}{_health_text(result.health)}")
    yield _line("checked", safe_line(", ".join(result.checked)))
    if result.backup is not None:
        yield _line("copy", safe_line(result.backup))
    for finding in result.repaired:
        yield _line("repaired", _finding_text(finding))
    for fault in result.damage:
        yield _line("damage", safe_line(fault))
    for severity in _ORDER:
        for finding in result.findings:
            if finding.severity == severity:
                yield _line(severity, _finding_text(finding))
    yield _line("result", _verdict(result))


def _line(word: str, text: str) -> str:
    return f"{word:<{_MARGIN}}{text}"


def _fitted(line: str, width: int | None) -> list[str]:
    """Return a line as it fits the terminal: broken between words, the rest below the text of the first."""
    if width is None or display_width(line) <= width:
        return [line]
    word, text = line[:_MARGIN], line[_MARGIN:]
    first, *others = wrap(text, width - _MARGIN)
    return [word + first, *(" " * _MARGIN + each for each in others)]


def _finding_text(finding: Finding) -> str:
    return f"{safe_line(finding.kind)}: {safe_line(finding.text)}"


def _health_text(health: StoreHealth | None) -> str:
    if health is None:
        return ""
    parts = [size_text(health.size)]
    if health.wal_size:
        parts.append(f"log {size_text(health.wal_size)}")
    if health.pages and health.free_pages:
        parts.append(f"{100 * health.free_pages // health.pages}% free")
    if health.schema_version is not None:
        parts.append(f"schema {health.schema_version}")
    return f" ({', '.join(parts)})"


def _verdict(result: Examination) -> str:
    if result.damage:
        return "damaged; nothing was changed. Restore a copy of the store, or move it away to begin anew"
    counts = [(word, sum(finding.severity == word for finding in result.findings)) for word in _ORDER]
    told = ", ".join(counted(count, word) for word, count in counts if count)
    fixable = sum(finding.fixable for finding in result.findings)
    hint = f"; `hermes doctor --fix` puts {fixable} right" if fixable else ""
    return f"{told}{hint}" if told else "sound"


def _record(result: Examination) -> dict[str, object]:
    health = result.health
    return {
        "location": result.location,
        "sound": _is_sound(result),
        "checked": list(result.checked),
        "size": None if health is None else health.size,
        "wal_size": None if health is None else health.wal_size,
        "pages": None if health is None else health.pages,
        "free_pages": None if health is None else health.free_pages,
        "journal_mode": None if health is None else health.journal_mode,
        "schema_version": None if health is None else health.schema_version,
        "damage": list(result.damage),
        "findings": [_finding_record(finding) for finding in result.findings],
        "repaired": [_finding_record(finding) for finding in result.repaired],
        "backup": result.backup,
    }


def _finding_record(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "subject": finding.subject,
        "severity": finding.severity,
        "fixable": finding.fixable,
        "text": finding.text,
    }
