"""What is installed and configured: ``hermes plugins list``, ``hermes agents``, ``hermes config show``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from hermes_cli.columns import layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import counted

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall

__all__ = ["agents", "plugins", "settings"]


def plugins(call: CliCall) -> int:
    """Print a row for each plugin that was found, and why one is not loaded."""
    from hermes_cli.log_lines import muted

    as_json = bool(call.values["json"])
    with nullcontext() if as_json else muted():  # the table says it all to a person, and says it once
        rows = call.app.plugin_rows()
    if as_json:
        from hermes_cli.records import print_json

        print_json(
            call.out,
            [
                {
                    "name": row.name,
                    "distribution": row.distribution,
                    "version": row.version,
                    "stage": row.stage,
                    "reason": row.reason,
                    "import_ms": row.import_ms,
                    "hooks": list(row.hooks),
                    "failures": row.failures,
                    "quarantined": row.quarantined,
                }
                for row in rows
            ],
        )
        return 0
    cells = [["PLUGIN", "DISTRIBUTION", "VERSION", "STAGE", "REASON"]]
    for row in rows:
        stage = f"{row.stage}, quarantined" if row.quarantined else row.stage
        failed = counted(row.failures, "failed call") if row.failures else ""
        reason = "; ".join(each for each in (row.reason, failed) if each)
        cells.append([safe_line(each) for each in (row.name, row.distribution, row.version, stage, reason)])
    for line in layout(cells, width=None, giving=4):  # a reason that is cut helps nobody
        print(line, file=call.out)
    return 0


def agents(call: CliCall) -> int:
    """Print the names that ``--agent`` and ``[agent] runner`` take, and mark who answers without them."""
    names = call.app.agent_names()
    default = call.app.default_agent
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [{"name": name, "default": name == default} for name in names])
        return 0
    rows = [[safe_line(name), "default" if name == default else ""] for name in names]
    for line in layout(rows, width=None, giving=1):
        print(line, file=call.out)
    return 0


def settings(call: CliCall) -> int:
    """Print every setting in force as TOML would have it, with ``--origin`` also where it came from."""
    rows = call.app.setting_rows()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(
            call.out,
            [{"section": row.section, "key": row.key, "value": row.value, "origin": row.origin} for row in rows],
        )
        return 0
    section: str | None = None
    lines = [f"{row.key} = {row.value}" for row in rows]
    widest = min(max((len(line) for line in lines), default=0), 60)
    for row, line in zip(rows, lines, strict=True):
        if row.section != section:
            if section is not None:
                print(file=call.out)
            section = row.section
            print(safe_line(f"[{section}]"), file=call.out)
        text = safe_line(line)
        print(f"{text:<{widest}}  # {safe_line(row.origin)}" if call.values["origin"] else text, file=call.out)
    return 0
