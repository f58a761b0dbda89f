"""The plugin: it offers older keys, and says what would become of those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.operations import Claim
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["SlackScopePlugin"]


class SlackScopePlugin:
    """Entry point ``slack-scope`` of the group ``hermes.plugins.v1``. It has no settings."""

    @hookimpl
    def hermes_legacy_claims(
        self, source: SessionSource, policy: KeyPolicy, keys: KeyBuilder
    ) -> Sequence[Claim] | None:
        from hermes_slack_scope.claims import claims_of

        return claims_of(source, policy, keys)

    @hookimpl
    def hermes_cli_commands(self) -> Sequence[CliCommand] | None:
        from hermes_hookspecs.cli import CliCommand, CliOption

        return (
            CliCommand(
                path=("slack-scope",),
                summary="Say what becomes of Slack conversations whose keys hold no workspace; changes nothing.",
                run="hermes_slack_scope.forecast:run",
                options=(CliOption(names=("--json",), kind="flag", help="Print JSON."),),
                details="What has become of them is shown by `hermes routes history`.",
            ),
        )
