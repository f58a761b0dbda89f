"""``hermes gateway`` and ``hermes pairing``: what people see, at several widths, and what programs get."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from hermes_cli import gateways, pairings
from hermes_cli.columns import display_width
from hermes_cli.gateway_log import JsonLines, TextLines
from hermes_hookspecs.cli import CliCall
from hermes_hookspecs.ports.gateway import AccountStatus, GatewayStatus, Pairing, Refusal
from hermes_hookspecs.source import Entrance

NOW = 1_790_000_000_000
ACCOUNTS = (
    AccountStatus(entrance=Entrance("feishu"), state="connected", since=NOW - 60_000, accepted=12, sent=11),
    AccountStatus(
        entrance=Entrance("weixin", "二号机器人"),
        state="waiting",
        since=NOW - 7_200_000,
        detail="网络不通: the endpoint does not answer, and this is so long that it is folded; tried again in 30 s",
    ),
    AccountStatus(entrance=Entrance("slack"), state="", since=0),
)
PROCESSES = (
    GatewayStatus(
        host="earth", pid=812, lives=True, started_at=NOW - 60_000, updated_at=NOW, health="http://127.0.0.1:9"
    ),
    GatewayStatus(host="earth", pid=700, lives=False, started_at=NOW - 90_000, updated_at=NOW - 80_000),
)
PAIRINGS = (
    Pairing(
        entrance=Entrance("feishu"), user_id="on_ming", user_name="小明\x1b[31m", since=NOW - 60_000, approved=True
    ),
    Pairing(entrance=Entrance("feishu"), user_id="on_hua", since=NOW - 60_000, expires_at=NOW + 600_000),
)
REFUSALS = (
    Refusal(
        entrance=Entrance("feishu"),
        reason="neither this group nor its sender is on the allow list",
        count=7,
        first_at=NOW - 90_000,
        last_at=NOW - 60_000,
        user_id="on_stranger_with_a_long_id",
        chat_id="oc_1",
    ),
)


@pytest.fixture
def call():
    """Return a function that calls a command over a gateway that says the above; gives status, out and err."""

    def run(command, *, width=None, processes=PROCESSES, accounts=ACCOUNTS, stopped=(), **values):
        gateway = SimpleNamespace(
            status=lambda: processes,
            accounts=lambda: accounts,
            refusals=lambda: REFUSALS,
            pairings=lambda: PAIRINGS,
            stop=lambda timeout_s: stopped,
            approve=lambda code: PAIRINGS[0],
            revoke=lambda user, platform: PAIRINGS[:1] if user == "on_ming" else (),
        )
        app = SimpleNamespace(
            gateway=gateway,
            clock=SimpleNamespace(now=lambda: NOW),
            store=SimpleNamespace(stats=lambda: SimpleNamespace(waiting=3)),
            outbox=SimpleNamespace(list=lambda statuses, limit: [SimpleNamespace(status="failed")]),
        )
        out, err = io.StringIO(), io.StringIO()
        values = {"json": False, "timeout": None, "platform": None} | values
        status = command(CliCall(app=app, values=values, out=out, err=err, width=width))
        return status, out.getvalue(), err.getvalue()

    return run


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", [gateways.status, pairings.list_pairings])
def test_every_line_fits_the_terminal_whatever_the_script(call, command, width):
    _, out, err = call(command, width=width)

    assert [line for line in (out + err).splitlines() if display_width(line) > width] == []
    assert "\x1b" not in out


def test_status_says_who_runs_who_died_and_what_waits(call):
    status, out, err = call(gateways.status, width=120)

    assert status == 1
    assert "gateway 812 on earth: running" in out
    assert "gateway 700 on earth: died without a word" in out
    assert "not running" in out
    assert err.startswith("3 messages waiting; 0 answers not sent yet; 1 given up (hermes outbox list); 7 messages")


def test_status_is_0_where_every_account_is_connected(call):
    assert call(gateways.status, processes=PROCESSES[:1], accounts=ACCOUNTS[:1])[0] == 0
    assert call(gateways.status, processes=PROCESSES[1:], accounts=ACCOUNTS[:1])[0] == 1
    assert call(gateways.status, processes=PROCESSES[:1], accounts=())[0] == 1


def test_in_a_pipe_an_account_is_one_line(call):
    _, out, _ = call(gateways.status)

    assert len([line for line in out.splitlines() if line.startswith("weixin/")]) == 1
    assert "tried again in 30 s" in out


def test_status_as_json_has_numbers_and_nulls(call):
    _, out, _ = call(gateways.status, json=True)

    held = json.loads(out)
    assert held["running"] is True
    assert [one["lives"] for one in held["processes"]] == [True, False]
    assert held["accounts"][2]["state"] is None
    assert held["refused"] == 7


def test_stop_says_what_still_runs(call):
    status, _, err = call(gateways.stop, stopped=PROCESSES)

    assert status == 75
    assert err.splitlines() == [
        "gateway 812 still runs; `kill` ends it, and nothing is lost",
        "gateway 700 has stopped",
    ]


def test_pairings_as_json(call):
    _, out, _ = call(pairings.list_pairings, json=True)

    held = json.loads(out)
    assert [one["approved"] for one in held["pairings"]] == [True, False]
    assert held["refusals"][0]["count"] == 7


def test_revoking_nobody_is_an_error_of_its_own(call):
    assert call(pairings.revoke, user="on_ming")[0] == 0
    status, _, err = call(pairings.revoke, user="nobody")
    assert status == 1
    assert "nobody has this id" in err


def test_a_log_line_commands_no_terminal_and_carries_its_fields():
    import logging

    record = logging.LogRecord("hermes_core.gateway", logging.WARNING, "", 0, "%s is \x1b[31m小", ("feishu",), None)
    record.platform, record.secret = "feishu", "no"

    assert "\x1b" not in TextLines().format(record)
    assert "warning: feishu is" in TextLines().format(record)
    held = json.loads(JsonLines().format(record))
    assert (held["level"], held["platform"]) == ("warning", "feishu")
    assert "secret" not in held
