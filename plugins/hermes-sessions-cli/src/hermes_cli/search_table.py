"""The commands that find what was said, as plain descriptions."""

from __future__ import annotations

from typing import Final

from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

__all__ = ["SEARCH_COMMANDS"]

_JSON = CliOption(names=("--json",), kind="flag", help="Print JSON.")
_INDEX = "What finds messages: its state, and making it anew."

SEARCH_COMMANDS: Final = (
    CliCommand(
        path=("sessions", "search"),
        summary="Find what was said; without a query list conversations, last active first.",
        run="hermes_cli.searching:run",
        arguments=(CliArgument(name="query", required=False, many=True, help="What to look for; words are joined."),),
        options=(
            CliOption(
                names=("--limit", "-n"),
                kind="int",
                least=1,
                most=100,
                metavar="N",
                help="Most conversations [default: 10; without a query 20].",
            ),
            CliOption(
                names=("--sort",), choices=("relevance", "newest", "oldest"), metavar="ORDER", help="Order of results."
            ),
            CliOption(
                names=("--role",),
                choices=("user", "assistant", "tool", "system"),
                many=True,
                metavar="ROLE",
                help="Only messages of this role; may be given several times [default: user and assistant].",
            ),
            CliOption(names=("--source",), metavar="PLATFORM", help="Only this platform: cli, feishu, slack, ..."),
            CliOption(names=("--since",), metavar="WHEN", help="Only from this date on, or this age: 2026-09-01, 7d."),
            CliOption(names=("--until",), metavar="WHEN", help="Only before this date, or this age."),
            CliOption(names=("--session",), metavar="REF", help="Read this session instead of searching."),
            CliOption(
                names=("--around",), kind="int", metavar="ID", help="With --session: show what stands around a message."
            ),
            CliOption(
                names=("--window",),
                kind="int",
                least=1,
                most=20,
                metavar="N",
                help="Messages on each side [default: 5].",
            ),
            CliOption(names=("--full",), kind="flag", help="Show what stands around each hit."),
            _JSON,
        ),
        details=(
            'All words must be there; OR, NOT, -word, "a phrase", begin* and (groups) mean what they say, in upper '
            "case; everything else is text. Every part of Chinese, Japanese, Korean or Thai text is found, and every "
            "part of a word from three characters on. Put `--` before a query that begins with a dash. The exit "
            "status is 1 where nothing was found."
        ),
    ),
    CliCommand(
        path=("search", "index", "status"),
        group_summary=_INDEX,
        summary="Print what the search index says of itself.",
        run="hermes_cli.searching:index_status",
        options=(_JSON,),
    ),
    CliCommand(
        path=("search", "index", "rebuild"),
        summary="Make the search index anew from the messages.",
        run="hermes_cli.searching:index_rebuild",
        options=(_JSON,),
    ),
    CliCommand(
        path=("search", "index", "verify"),
        summary="Say whether the search index is sound; the exit status is 1 where it is not.",
        run="hermes_cli.searching:index_verify",
        options=(_JSON,),
    ),
    CliCommand(
        path=("search", "index", "drop"),
        summary="Delete the tables of an index: one of another version, or whose plugin is gone.",
        run="hermes_cli.searching:index_drop",
        arguments=(CliArgument(name="name", help="Name of the index's plugin: fts5."),),
        details="Nothing is lost: what such tables hold is made anew from the messages.",
    ),
)
"""All of them, in the order of the help."""
