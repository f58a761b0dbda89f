"""``hermes sessions export``: JSON lines, one conversation a line."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_cli.kept_files import refuse_kept_files
from hermes_cli.records import json_text
from hermes_cli.times import counted
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from hermes_hookspecs.cli import CliCall

__all__ = ["file_name", "run"]

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 80
_RESERVED = frozenset({"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)})


def file_name(session_id: str) -> str:
    """Return the one file name of an id: bounded, inside the folder on every system, of no other id.

    Ids that are plain lower-case names stay as they are. Every other one gets its harmless characters, ``~``, which no
    plain name holds, and a hash of the whole id; so two ids never share a file, not even where case does not count.
    The id itself is in the file.
    """
    if 0 < len(session_id) <= _LONGEST and _PLAIN.issuperset(session_id) and session_id not in _RESERVED:
        return f"{session_id}.jsonl"
    from hashlib import sha256

    shown = "".join(each if each in _PLAIN else "_" for each in session_id.lower())[:40]
    digest = sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{shown}~{digest}.jsonl"


def run(call: CliCall) -> int:
    """Write conversations to stdout, to a file in one step, or to a folder with a file for each."""
    target = call.values["out"]
    if isinstance(target, str) and target != "-":
        refuse_kept_files(target, call.app)
    records = _records(call)
    if not isinstance(target, str) or target == "-":
        for record in records:
            _write_line(call.out, record)
        return 0
    if os.path.isdir(target):
        files = ((os.path.join(target, file_name(str(record.get("session_id", "")))), record) for record in records)
        count = 0
        for path, record in files:
            refuse_kept_files(path, call.app)
            count += _replace(path, path, [record])
    elif os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with open(target, "w", encoding="utf-8") as file:  # a pipe or a device cannot be replaced
            count = sum(_write_line(file, record) for record in records)
    else:
        count = _replace(os.path.realpath(target), target, records)
    print(f"{counted(count, 'conversation')} exported", file=call.err)
    return 0


def _records(call: CliCall) -> Iterator[dict[str, object]]:
    source = call.values["source"]
    source = source if isinstance(source, str) else None
    reference = call.values["session_id"]
    if not isinstance(reference, str):
        return call.app.export_sessions(operator(), source=source)
    found = call.app.resolve(reference, operator())
    if source is not None and found.lineage.source.platform != source:
        raise HermesError(f"{found.lineage.tip} is a session of {found.lineage.source.platform}, not of {source}")
    return iter((call.app.export_session(found.lineage.tip, lineage=True),))


def _write_line(out: TextIO, record: dict[str, object]) -> int:
    text = json_text(record)
    if not text.isascii() and (out.encoding or "").lower().replace("-", "") not in ("utf8", "utf8sig"):
        import json

        text = json.dumps(record)  # the same data in ASCII, for a locale without UTF-8
    out.write(text)
    out.write("\n")
    return 1


def _replace(path: str, asked: str, records: Iterable[dict[str, object]]) -> int:
    """Write all records to a new file beside ``path`` and put it there once it is complete; return how many.

    :param asked: the file as the person named it, which is what an error names.
    """
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    if len(os.path.basename(temporary).encode("utf-8", "surrogateescape")) > 255:
        temporary = os.path.join(os.path.dirname(path), f".hermes-{os.urandom(6).hex()}.tmp")
    try:
        return _written(path, temporary, records)
    except OSError as error:
        if error.filename != temporary:
            raise
        raise OSError(error.errno, error.strerror, asked) from error


def _written(path: str, temporary: str, records: Iterable[dict[str, object]]) -> int:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            count = sum(_write_line(file, record) for record in records)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return count
