"""The care of an open profile for people: leases, examination, repair, copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.care.backups import (
    attachments_of,
    copy_attachments,
    forget_leftovers,
    leftovers,
    new_backup,
    newest_backup,
)
from hermes_core.care.checks import (
    DEAD_LEASE,
    DEAD_SOCKET,
    UNFINISHED_COPY,
    after_repair,
    check_entrances,
    check_health,
    check_leases,
    check_outbox,
    check_plugins,
    check_quarantined,
    dead_servers,
)
from hermes_core.care.settings import check_commands, check_reset
from hermes_core.care.sockets import dead_sockets, remove_dead_sockets
from hermes_core.leases import holder_lives
from hermes_hookspecs.errors import StorageError, StoreDamaged, StoreRefused
from hermes_hookspecs.operations import LeaveEntrances
from hermes_hookspecs.ports.care import Finding
from hermes_hookspecs.ports.desks import Examination, LeaseRow
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from hermes_core.config.sections import Settings
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.app import PluginRow
    from hermes_hookspecs.ports.care import StoreHealth
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.services import AttachmentCopier, AttachmentStore
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.turns import Lease

    Progress = Callable[[str], None]

__all__ = ["CareDesk"]

MOST_WAITING = 1000
"""Messages behind one lease that are counted."""


class CareDesk:
    """Care of one profile (:class:`~hermes_hookspecs.ports.desks.Care`). Every method blocks.

    :param store: returns the open store, or raises why there is none. settings: effective ones.
    :param wake_folder: returns where processes of this store find each other, ``None`` where they do not.
    :param plugin_rows: loads the plugins and tells what became of each.
    :param reset_policies: loads the plugins and returns the names of their reset policies.
    :param command_names: loads the plugins and returns all names of a platform's commands, of all for ``""``.
    :param index: returns what searches the store.
    :param files: returns where the bytes of attachments are.
    :param recover: closes turns whose process is gone, as their messages want it; returns how many.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        clock: Clock,
        settings: Settings,
        *,
        wake_folder: Callable[[], str | None],
        plugin_rows: Callable[[], Sequence[PluginRow]],
        reset_policies: Callable[[], Collection[str]],
        command_names: Callable[[str], Collection[str]],
        recover: Callable[[], int],
        index: Callable[[], SearchIndex],
        files: Callable[[], AttachmentStore],
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._wake_folder = wake_folder
        self._plugin_rows = plugin_rows
        self._reset_policies = reset_policies
        self._command_names = command_names
        self._recover = recover
        self._index = index
        self._files = files

    # --- leases

    def leases(self) -> Sequence[LeaseRow]:
        """Return the leases that are held, longest held first."""
        store = self._store()
        return [self._row(store, lease) for lease in store.leases()]

    def _row(self, store: Store, lease: Lease) -> LeaseRow:
        return LeaseRow(
            lease=lease,
            lineage=store.lineage(lease.lineage_id, operator()),
            turn=store.active_turn(lease.lineage_id),
            lives=None if lease.holder is None else holder_lives(lease.holder),
            waiting=len(store.waiting(lease.lineage_id, limit=MOST_WAITING)),
        )

    # --- examination

    def examine(self, *, progress: Progress | None = None) -> Examination:
        """Look for damage, faults of rows, dead and stuck holders, and unfit surroundings; change nothing.

        A store that cannot be opened is a finding, too. :raises StoreBusy: others kept it.
        """
        look = _Look(progress)
        store = self._opened(look)
        health: StoreHealth | None = None
        if store is not None:
            health = self._look_at_store(store, look)
        look.at("plugins", lambda: check_plugins(self._plugin_rows))
        look.at("settings", self._look_at_settings)
        return Examination(
            location=str(self._settings.db_path) if store is None else store.location,
            health=health,
            damage=tuple(look.damage),
            findings=tuple(look.findings),
            checked=tuple(look.checked),
        )

    def _look_at_settings(self) -> Iterator[Finding]:
        yield from check_reset(self._settings, self._reset_policies)
        yield from check_commands(self._settings, self._command_names)

    def _opened(self, look: _Look) -> Store | None:
        look.begin("store")
        try:
            return self._store()
        except StoreDamaged as error:
            look.damage.append(str(error))
        except StoreRefused as error:
            look.findings.append(Finding(kind="store-refused", subject="store", text=str(error), severity="error"))
        return None

    def _look_at_store(self, store: Store, look: _Look) -> StoreHealth | None:
        care = store.care()
        health: StoreHealth | None = None
        if care is not None:
            look.begin("integrity")
            look.damage += care.integrity()
            if look.damage:
                return None  # what a damaged file answers is no ground for anything
            look.at("rows", care.findings)
            health = care.health()
            found = check_health(health)
            look.at("log", lambda: found)
        now = self._clock.now()
        look.at("leases", lambda: check_leases(store, now))
        look.at("entrances", lambda: check_entrances(store))
        look.at("inbox", lambda: check_quarantined(store, now))
        look.at("outbox", lambda: check_outbox(store, now))
        look.at("search index", lambda: self._index().verify())
        look.at("leftovers", lambda: self._leftovers(now))
        return health

    def _leftovers(self, now: int) -> Iterable[Finding]:
        folder = self._wake_folder()
        sockets = () if folder is None else dead_sockets(folder)
        if folder is not None and sockets:
            text = f"sockets of processes that are gone: {len(sockets)}, in {folder}"
            yield Finding(kind=DEAD_SOCKET, subject=folder, text=text, fixable=True, severity="note")
        for path in leftovers(self._settings.folder, now):
            text = f"{path} is a copy that was never finished"
            yield Finding(kind=UNFINISHED_COPY, subject=str(path), text=text, fixable=True, severity="note")

    # --- repair

    def repair(self, *, progress: Progress | None = None) -> Examination:
        """Copy the store, then put right what can be put right; a second call finds nothing to do.

        :raises StoreDamaged: the file itself is damaged; nothing was changed, the way out is in the message.
        :raises StorageError: it cannot be opened or copied; nothing was changed.
        """
        try:
            store = self._store()
        except StoreDamaged as error:
            raise StoreDamaged(f"{error}{self._newest()}") from error
        before = self.examine(progress=progress)
        if before.damage:
            raise StoreDamaged(
                f"{before.location} is damaged ({before.damage[0]}); nothing was changed. Restore a copy, or save what "
                f"can still be read with `hermes sessions export` and move the file and its log away{self._newest()}"
            )
        fixable = [finding for finding in before.findings if finding.fixable]
        if not fixable:
            return before
        tell = _Look(progress).begin
        tell("copy")
        copy = self.backup() if store.care() is not None else None
        tell("repair")
        repaired = self._put_right(store, fixable)
        after = self.examine(progress=progress)
        still = {(finding.kind, finding.subject) for finding in after.findings}
        repaired += [
            after_repair(finding)
            for finding in fixable
            if (finding.kind, finding.subject) not in still
            and (finding.kind, finding.subject) not in {(one.kind, one.subject) for one in repaired}
        ]
        return attrs.evolve(after, repaired=tuple(repaired), backup=None if copy is None else str(copy))

    def _put_right(self, store: Store, fixable: Sequence[Finding]) -> list[Finding]:
        """Repair rows first, so that recovery walks on sound ones."""
        care = store.care()
        repaired = [] if care is None else list(care.repair())
        holders = tuple(dict.fromkeys(server.holder for server in dead_servers(store)))
        if holders:
            store.apply(LeaveEntrances(holders=holders, now=self._clock.now()))
        if any(finding.kind == DEAD_LEASE for finding in fixable):
            self._recover()
        if any(finding.fixable for finding in self._index().verify()):
            self._index().rebuild()
        folder = self._wake_folder()
        if folder is not None:
            remove_dead_sockets(folder)
        forget_leftovers(self._settings.folder, self._clock.now())
        return repaired

    def _newest(self) -> str:
        newest = newest_backup(self._settings.folder)
        return "" if newest is None else f"; the newest copy is {newest}"

    # --- copies

    def backup(self, target: Path | None = None, *, progress: Callable[[int, int], None] | None = None) -> Path:
        """Copy the store while it is in use, and the attachments beside it; return where the copy is.

        :param target: file to make; ``None`` names one in the profile's folder ``backups``. Attachments, where there
            are any and their store can be copied, are in the folder that belongs to a database of that name.
        :raises StorageError: the target exists, or the copy failed; nothing half done is left.
        """
        store = self._store()
        care = store.care()
        if care is None:
            raise StorageError(f"a store of the kind {store.name!r} has no file to copy")
        if target is None:
            try:
                target = new_backup(self._settings.folder, self._clock.now())
            except OSError as error:
                raise StorageError(f"the folder {error.filename} cannot be made ({error.strerror})") from error
        place = attachments_of(target)
        if place.exists():
            raise StorageError(f"{place} is there already; a copy replaces nothing, choose another name")
        care.backup(target, progress=progress)
        files = self._files()
        if callable(getattr(files, "copy_to", None)):
            copier: AttachmentCopier = files  # type: ignore[assignment]  # the method is the port
            try:
                copy_attachments(copier, target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        return target


class _Look:
    """What one examination has found so far."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.checked: list[str] = []
        self.damage: list[str] = []
        self.findings: list[Finding] = []

    def begin(self, name: str) -> None:
        """Say what comes next."""
        self.checked.append(name)
        if self._progress is not None:
            self._progress(name)

    def at(self, name: str, check: Callable[[], Iterable[Finding]]) -> None:
        """Run one check."""
        self.begin(name)
        self.findings += check()
