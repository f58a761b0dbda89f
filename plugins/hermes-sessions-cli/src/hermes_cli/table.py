"""The commands of this entrance, as plain descriptions; their code is imported when they are called."""

from __future__ import annotations

from typing import Final

from hermes_cli.gateway_table import GATEWAY_COMMANDS, QUICK
from hermes_cli.oversight_table import OVERSIGHT_COMMANDS, READERS
from hermes_cli.search_table import SEARCH_COMMANDS
from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

__all__ = ["CHAT", "COMMANDS", "LOAD_NO_PLUGINS"]

_JSON = CliOption(names=("--json",), kind="flag", help="Print JSON: an array for a list, an object for one thing.")
_MOST_ROWS = CliOption(
    names=("--limit", "-n"),
    kind="int",
    least=1,
    most=1_000_000,
    metavar="N",
    help="Most rows [default: 50; with --all no limit].",
)
_SOURCE = CliOption(names=("--source",), metavar="PLATFORM", help="Only this platform: cli, feishu, slack, ...")
_REF = CliArgument(name="ref", help="Session id, title, or an unambiguous beginning of an id.")
_NUMBERS = CliArgument(name="numbers", required=False, many=True, help="Numbers that `hermes outbox list` shows.")
_SESSIONS = "List, show, rename, export and delete sessions."

CHAT: Final = CliCommand(
    path=("chat",),
    summary="Talk; what bare `hermes` does.",
    run="hermes_cli.chat:run",
    options=(
        CliOption(
            names=("--query", "-q"), metavar="TEXT", help="Ask one question, print the answer, leave; - reads stdin."
        ),
        CliOption(
            names=("--continue", "-c"),
            kind="optional",
            metavar="[NAME]",
            help="Go on with the session NAME; without it with this terminal's, else with the latest of the terminal.",
        ),
        CliOption(names=("--resume", "-r"), metavar="REF", help="Go on with a session; wins over --continue."),
        CliOption(names=("--session",), metavar="REF", help="The same, for `--session=ID --continue`."),
        CliOption(names=("--agent",), metavar="NAME", help="Who answers (see `hermes agents`)."),
        CliOption(names=("--json",), kind="flag", help="With --query: print the answer as one JSON object."),
    ),
    details=(
        "On a terminal: Enter sends, Alt-Enter begins a new line, Ctrl-C clears the line or stops the answer, Ctrl-D "
        "leaves, /help shows the commands. With stdin from a pipe each line is one message or one /command; answers "
        "go to stdout, everything else to stderr, and the exit status is 1 when one of them failed."
    ),
)
"""The command that a command line without a command means."""

COMMANDS: Final = (
    CHAT,
    CliCommand(
        path=("sessions", "list"),
        group_summary=_SESSIONS,
        summary="List conversations, last active first.",
        run="hermes_cli.listing:run",
        options=(
            _SOURCE,
            CliOption(
                names=("--limit", "-n"),
                kind="int",
                least=1,
                most=1_000_000,
                metavar="N",
                help="Most rows [default: 20; with --all no limit].",
            ),
            CliOption(names=("--all", "-a"), kind="flag", help="Also archived ones, and those without a message."),
            _JSON,
        ),
        details=(
            "What is left out is counted in a last line, so that the numbers add up with `hermes sessions stats`. "
            "A preview in quotes stands where there is no title. In a pipe nothing is cut and times are UTC."
        ),
    ),
    CliCommand(
        path=("sessions", "show"),
        summary="Show a conversation: what is known of it, and what was said.",
        run="hermes_cli.showing:run",
        arguments=(_REF,),
        options=(
            CliOption(
                names=("--last", "-n"), kind="int", least=0, most=10**9, metavar="N", help="Only the last N messages."
            ),
            CliOption(
                names=("--context",), kind="flag", help="What a model would be sent now, and what repair made of it."
            ),
            CliOption(names=("--recap",), kind="flag", help="What was wanted, done, decided and left open."),
            _JSON,
        ),
        details=(
            "The entrance (platform, account, person) is named wherever it changes. With --context: the parts of the "
            "prompt, about how many tokens, what is left out, what repair changed and why, then all of it."
        ),
    ),
    CliCommand(
        path=("sessions", "rename"),
        summary="Give a conversation a title; an empty one takes it away.",
        run="hermes_cli.editing:rename",
        arguments=(_REF, CliArgument(name="title", many=True, help="At most 100 characters; words are joined.")),
        options=(_JSON,),
    ),
    CliCommand(
        path=("sessions", "export"),
        summary="Write conversations as JSON lines, one a line.",
        run="hermes_cli.exporting:run",
        arguments=(
            CliArgument(name="out", required=False, help="File, existing folder (one file each), or - for stdout."),
        ),
        options=(
            _SOURCE,
            CliOption(names=("--session-id",), metavar="REF", help="Only this conversation."),
        ),
        details="A file is replaced in one step once everything is written; files have mode 0600.",
    ),
    CliCommand(
        path=("sessions", "delete"),
        summary="Delete a conversation for good, all its segments.",
        run="hermes_cli.editing:delete",
        arguments=(_REF,),
        options=(
            CliOption(names=("--yes", "-y"), kind="flag", help="Do not ask."),
            CliOption(names=("--force",), kind="flag", help="Stop a turn that is running there first."),
            _JSON,
        ),
    ),
    CliCommand(
        path=("sessions", "stats"),
        summary="Count conversations, sessions and messages, also by platform.",
        run="hermes_cli.counting:run",
        options=(_JSON,),
    ),
    CliCommand(
        path=("routes", "list"),
        group_summary="Which address leads to which session, and why.",
        summary="List routes, last used first.",
        run="hermes_cli.routes:list_routes",
        options=(
            _MOST_ROWS,
            CliOption(names=("--all", "-a"), kind="flag", help="Also the routes of terminals."),
            _JSON,
        ),
        details=(
            "Routes of terminals are counted in a last line: each terminal that ever talked leaves one. On a terminal "
            "a long key is cut in the middle; in a pipe, and with --json, it is whole."
        ),
    ),
    CliCommand(
        path=("routes", "explain"),
        summary="Say why a message lands where it lands; changes nothing.",
        run="hermes_cli.routes:explain",
        arguments=(CliArgument(name="key", required=False, help="A session key that `routes list` shows."),),
        options=(
            CliOption(names=("--platform",), metavar="NAME", help="Platform of the message [default: this terminal]."),
            CliOption(names=("--chat-type",), default="dm", metavar="TYPE", help="dm, group, channel, thread, ..."),
            CliOption(names=("--account",), metavar="ALIAS", help="Account that receives it."),
            CliOption(names=("--scope",), metavar="ID", help="Workspace or tenant."),
            CliOption(names=("--chat",), metavar="ID", help="Conversation."),
            CliOption(names=("--thread",), metavar="ID", help="Thread or topic."),
            CliOption(names=("--user",), metavar="ID", help="Sender."),
            CliOption(names=("--user-alt",), metavar="ID", help="More stable id of the sender."),
            _JSON,
        ),
    ),
    CliCommand(
        path=("routes", "rekey"),
        summary="Move routes whose key another setting or version has changed; without --apply changes nothing.",
        run="hermes_cli.rekeying:rekey",
        options=(
            CliOption(names=("--dry-run",), kind="flag", help="Only show what can move and what is refused [default]."),
            CliOption(names=("--apply",), kind="flag", help="Move what can move."),
            CliOption(
                names=("--undo",), kind="optional", metavar="NAME", help="Move back what was moved last, or so named."
            ),
            _JSON,
        ),
        details=(
            "Stop the gateway, change the settings, run this, start the gateway. A route moves with what waits there "
            "when its session is nobody else's under the new key; else it is refused and stays, and its people begin "
            "anew. --undo does not change the settings back."
        ),
    ),
    CliCommand(
        path=("routes", "history"),
        summary="List the routes that were claimed, refused or moved, and why, newest first.",
        run="hermes_cli.rekeying:history",
        options=(
            CliOption(
                names=("--limit", "-n"),
                kind="int",
                least=1,
                most=1_000_000,
                metavar="N",
                help="Most lines [default: 50].",
            ),
            _JSON,
        ),
    ),
    CliCommand(
        path=("reset", "explain"),
        group_summary="When conversations end by themselves.",
        summary="Say when a conversation ends by itself, and which setting says so; changes nothing.",
        run="hermes_cli.resetting:explain",
        arguments=(CliArgument(name="ref", help="Session key, session id, title, or a beginning of an id."),),
        options=(_JSON,),
    ),
    CliCommand(
        path=("leases",),
        summary="List the turns that run, who runs them, and whether that process lives.",
        run="hermes_cli.leases:run",
        options=(_JSON,),
    ),
    CliCommand(
        path=("outbox", "list"),
        group_summary="Answers on their way to chat platforms.",
        summary="List answers that wait, are being sent, or failed, newest first.",
        run="hermes_cli.deliveries:list_deliveries",
        options=(
            CliOption(
                names=("--status",),
                choices=("waiting", "sending", "sent", "failed", "dropped", "joined"),
                many=True,
                metavar="STATUS",
                help="Only these; may be given several times.",
            ),
            _MOST_ROWS,
            CliOption(names=("--all", "-a"), kind="flag", help="Also those that were sent or dropped."),
            _JSON,
        ),
    ),
    CliCommand(
        path=("outbox", "retry"),
        summary="Let answers be sent as soon as their turn comes and their account may send.",
        run="hermes_cli.deliveries:retry",
        arguments=(_NUMBERS,),
        options=(CliOption(names=("--failed",), kind="flag", help="All that failed."), _JSON),
        details="What of an answer went out already is not sent again. Failures count anew.",
    ),
    CliCommand(
        path=("outbox", "drop"),
        summary="Never send answers; those behind them go on.",
        run="hermes_cli.deliveries:drop",
        arguments=(_NUMBERS,),
        options=(
            CliOption(names=("--failed",), kind="flag", help="All that failed."),
            CliOption(names=("--yes", "-y"), kind="flag", help="Do not ask."),
            _JSON,
        ),
        details="The answer stays in its conversation; `hermes outbox retry` takes it back.",
    ),
    CliCommand(
        path=("doctor",),
        summary="Say whether the store is sound, who is stuck, and what is left over.",
        run="hermes_cli.doctor:run",
        options=(
            CliOption(names=("--fix",), kind="flag", help="Copy the store, then put right what can be put right."),
            _JSON,
        ),
        details=(
            "The exit status is 1 where an error or a warning is left. No message's text is ever changed: rows are "
            "reconnected, closed or counted anew, in one step. A damaged file is not touched."
        ),
    ),
    CliCommand(
        path=("backup",),
        summary="Copy the store while others use it, and print where the copy is.",
        run="hermes_cli.copies:run",
        arguments=(
            CliArgument(
                name="path", required=False, help="File to make, or a folder [default: one in the profile's `backups`]."
            ),
        ),
        options=(_JSON,),
        details="The copy is of one moment, checked, and of mode 0600; what is there already is never replaced.",
    ),
    *OVERSIGHT_COMMANDS,
    *SEARCH_COMMANDS,
    *GATEWAY_COMMANDS,
    CliCommand(
        path=("plugins", "list"),
        group_summary="What is plugged in.",
        summary="List plugins with their stage, and why one is not loaded.",
        run="hermes_cli.inventory:plugins",
        options=(_JSON,),
    ),
    CliCommand(
        path=("agents",),
        summary="List the agents that --agent takes.",
        run="hermes_cli.inventory:agents",
        options=(_JSON,),
    ),
    CliCommand(
        path=("config", "show"),
        group_summary="What is configured.",
        summary="Print every setting in force; secrets are masked.",
        run="hermes_cli.inventory:settings",
        options=(CliOption(names=("--origin",), kind="flag", help="Also print where each value comes from."), _JSON),
    ),
)
"""All of them, in the order of the help."""

LOAD_NO_PLUGINS: Final = frozenset(
    {("sessions", name) for name in ("list", "show", "export", "stats")}
    | {("routes", "list"), ("config", "show"), ("leases",), ("outbox", "list"), ("backup",)}
    | QUICK
    | READERS
)
"""Paths of the quick commands: they read, and nothing else."""
