"""Which terminal this is."""

from __future__ import annotations

import pytest

from hermes_cli.terminal import terminal_id, transient_source


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "pts-3"),
        ({"TMUX_PANE": "%5", "TMUX": "/tmp/tmux-0/default,1234,0"}, "pts-3.tmux-1234-5"),
        ({"TMUX_PANE": "%5", "TERM_SESSION_ID": "outer"}, "pts-3.tmux-5"),
        ({"STY": "77.pts-0.host", "WINDOW": "2"}, "pts-3.screen-77-pts-0-host-2"),
        ({"WT_SESSION": "a1b2-c3"}, "pts-3.a1b2-c3"),
        ({"TERM_SESSION_ID": "w0t1p0:ABC"}, "pts-3.w0t1p0-ABC"),
    ],
)
def test_a_terminal_is_its_device_and_what_draws_inside_it(environ, name):
    assert terminal_id("/dev/pts/3", environ) == name


def test_two_panes_and_two_servers_are_different_terminals():
    environ = {"TMUX": "/tmp/tmux-0/default,1234,0", "TMUX_PANE": "%5"}

    names = {
        terminal_id("/dev/pts/3", environ),
        terminal_id("/dev/pts/3", {**environ, "TMUX_PANE": "%6"}),
        terminal_id("/dev/pts/3", {**environ, "TMUX": "/tmp/tmux-0/default,99,0"}),
        terminal_id("/dev/pts/4", environ),
    }

    assert len(names) == 4


def test_without_a_device_there_is_no_terminal():
    assert terminal_id(None, {"TMUX_PANE": "%5"}) is None


def test_a_long_name_is_bounded_and_stays_different():
    one = terminal_id("/dev/pts/3", {"TERM_SESSION_ID": "x" * 300 + "1"})
    two = terminal_id("/dev/pts/3", {"TERM_SESSION_ID": "x" * 300 + "2"})

    assert one != two
    assert len(one) <= 80


def test_programs_without_a_terminal_never_share_an_address():
    one, two = transient_source(), transient_source()

    assert one.chat_id != two.chat_id
    assert (one.platform, one.chat_type) == ("cli", "dm")
    assert one.chat_id.startswith("run-")
