"""What people look after a profile with: its outbox, the care of its store, a round of maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.app import PluginRow
    from hermes_hookspecs.ports.desks import Care, Maintained, Outbox
    from hermes_hookspecs.ports.rekeying import Rekeying
    from hermes_hookspecs.ports.search import SearchIndex

__all__ = ["Desks"]


class Desks(Profile):
    """An open profile with its desks (:class:`~hermes_hookspecs.ports.desks.HasDesks`). Thread-safe."""

    def plugin_rows(self) -> Sequence[PluginRow]:
        """Load the plugins and return a row for each, built-in ones last."""
        from hermes_core.plugins.report import contract_row

        return [contract_row(row) for row in self.hooks.host.rows()]

    @property
    def search_index(self) -> SearchIndex:
        """Return what searches, opened at the first use: a plugin's index, or a scan where none works."""
        return self._search.search_index

    @property
    def outbox(self) -> Outbox:
        """Return the outbox, for people."""
        from hermes_core.outbox.desk import OutboxDesk

        return OutboxDesk(lambda: self.store, self.clock, self.wake_topic)

    @property
    def care(self) -> Care:
        """Return the care of the store."""
        from hermes_core.care.desk import CareDesk

        return CareDesk(
            lambda: self.store,
            self.clock,
            self.settings,
            wake_folder=lambda: self.wake_folder,
            plugin_rows=self.plugin_rows,
            reset_policies=lambda: self.hooks.reset_policies(),  # noqa: PLW0108 - loads the plugins
            command_names=lambda platform: self.command_book.names(platform),  # noqa: PLW0108 - loads the plugins
            index=lambda: self.search_index,
            files=lambda: self.attachments,
            recover=lambda: self._turns.recovery.close_dead_turns(),  # noqa: PLW0108 - opened late
        )

    @property
    def rekeying(self) -> Rekeying:
        """Return what looks after routes when the key policy changes."""
        from hermes_core.routing.desk import RekeyDesk

        return RekeyDesk(lambda: self.store, lambda: self.desk.keys, self.settings, self.clock)

    def maintain(self) -> Maintained:
        """Recover, sweep, index. Idempotent; blocks for a bounded time."""
        from hermes_core.care.maintain import maintain

        return maintain(
            self.store,
            self.clock,
            self.settings,
            self._turns,
            resets=self.desk.resets,
            index=self.search_index,
            files=self.attachments,
            plugins={row.name for row in self.hooks.host.rows() if row.stage != "blocked"},
        )
