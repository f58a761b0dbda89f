"""Which settings are in force where, where they came from, and what is refused."""

from __future__ import annotations

import pytest

from hermes_core.config import load_settings
from hermes_core.config.listing import describe
from hermes_core.resets.effective import any_policy, effective
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.source import SessionSource

GENERAL = """
[session_reset]
mode = "daily"
at_hour = 5
[session_reset.chat_types.group]
mode = "none"
[platforms.slack.session_reset]
idle_minutes = 120
mode = "both"
[platforms.slack.chat_types.group.session_reset]
mode = "idle"
[platforms.slack.chats.C1.session_reset]
timezone = "Asia/Shanghai"
[platforms.slack.users."U.1".session_reset]
timezone = "Europe/Berlin"
notify = false
"""


@pytest.fixture
def load(tmp_path):
    def make(text, profile_text=None, **options):
        home = tmp_path / "home"
        (home / "profiles" / "work").mkdir(parents=True)
        (home / "config.toml").write_text(text, encoding="utf-8")
        if profile_text is not None:
            (home / "profiles" / "work" / "config.toml").write_text(profile_text, encoding="utf-8")
        return load_settings(home, None if profile_text is None else "work", options, {})

    return make


def source(platform="slack", **fields):
    return SessionSource(**{"platform": platform, "chat_type": "dm", "chat_id": "D1", "user_id": "U2"} | fields)


@pytest.mark.parametrize(
    ("where", "shared", "expected"),
    [
        (source("feishu"), False, ("daily", 1440, "")),
        (source("feishu", chat_type="group"), False, ("none", 1440, "")),
        (source(), False, ("both", 120, "")),
        (source(chat_type="group"), False, ("idle", 120, "")),
        (source(chat_type="group", chat_id="C1"), True, ("idle", 120, "Asia/Shanghai")),
        (source(user_id="U.1"), False, ("both", 120, "Europe/Berlin")),
        (source(user_id_alt="U.1"), False, ("both", 120, "Europe/Berlin")),
        (source(user_id="U.1", chat_type="group", chat_id="C1"), False, ("idle", 120, "Europe/Berlin")),
        (source(user_id="U.1", chat_type="group", chat_id="C1"), True, ("idle", 120, "Asia/Shanghai")),
    ],
)
def test_the_most_special_table_wins_key_by_key(load, where, shared, expected):
    chosen = effective(load(GENERAL), where, shared=shared).settings

    assert (chosen.mode, chosen.idle_minutes, chosen.timezone) == expected
    assert chosen.at_hour == 5


def test_every_value_has_its_origin(load, tmp_path):
    file = tmp_path / "home" / "config.toml"

    origins = effective(load(GENERAL), source(user_id="U.1"), shared=False).origins

    assert origins == {
        "mode": f"{file} [platforms.slack.session_reset]",
        "idle_minutes": f"{file} [platforms.slack.session_reset]",
        "at_hour": str(file),
        "timezone": f'{file} [platforms.slack.users."U.1".session_reset]',
        "notify": f'{file} [platforms.slack.users."U.1".session_reset]',
        "bg_process_max_age_hours": "default",
    }


def test_an_excluded_platform_is_named_as_the_origin_of_no_notice(load):
    chosen = effective(load('[session_reset]\nmode = "idle"\n'), source("webhook"), shared=False)

    assert (chosen.notify, chosen.origins["notify"]) == (False, "notify_exclude_platforms, default")


def test_a_profile_stands_above_the_home_key_by_key(load):
    settings = load(
        '[platforms.slack.session_reset]\nmode = "idle"\nidle_minutes = 5\n',
        "[platforms.slack.session_reset]\nidle_minutes = 9\n",
    )

    chosen = effective(settings, source(), shared=False)

    assert (chosen.settings.mode, chosen.settings.idle_minutes) == ("idle", 9)
    assert "profiles" in chosen.origins["idle_minutes"]
    assert "profiles" not in chosen.origins["mode"]


@pytest.mark.parametrize(
    ("text", "anything"),
    [
        ("", False),
        ("[session_reset]\nidle_minutes = 5\n", False),
        ('[session_reset]\nmode = "idle"\n', True),
        ('[platforms.slack.session_reset]\nmode = "idle"\n', True),
        ('[session_reset.chat_types.dm]\nmode = "weekly"\n', True),
        ('[platforms.slack.session_reset]\nmode = "none"\n', False),
    ],
)
def test_a_profile_without_a_policy_is_known_as_such(load, text, anything):
    """Case E11: only ``idle_minutes`` set is no policy."""
    assert any_policy(load(text)) is anything


def test_overrides_are_listed_with_the_rest(load, tmp_path):
    rows = [row for row in describe(load(GENERAL)) if row.section.endswith("C1.session_reset")]

    assert [(row.section, row.key, row.value, row.origin) for row in rows] == [
        ("platforms.slack.chats.C1.session_reset", "timezone", "Asia/Shanghai", str(tmp_path / "home" / "config.toml"))
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[platforms.slack.session_reset]\nmood = 'idle'\n",
            r':2: \[platforms.slack.session_reset\] there is no key "mood"',
        ),
        ("[platforms.slack.session_reset]\nat_hour = 24\n", r":2: .* at_hour = 24 is out of range"),
        (
            "[platforms.slack.session_reset]\nreset_triggers = []\n",
            'no key "reset_triggers"; it belongs in .session_reset',
        ),
        ("[platforms.slack.session_reset]\ntimezone = 'Mars'\n", "is no time zone known"),
        ("[platforms.slack]\nsession_reset = 1\n", "session_reset is no table"),
        ("[platforms.slack.chats.C1]\nmode = 'idle'\n", 'no key "mode"; it belongs in .session_reset'),
        ("[platforms.slack.chats]\nC1 = 1\n", "C1 is no table"),
        ("[session_reset.chat_types.group]\nidle_minutes = 0\n", "out of range"),
        ("[session_reset]\nchat_types = 1\n", "chat_types is no table"),
        ("[session_reset.chats.C1]\nmode = 'idle'\n", 'no key "chats"'),
        ("[session_reset]\nreset_triggers = ['/new', '/new session']\n", 'holds "/new session"; write a slash and one'),
        ("[session_reset]\nreset_triggers = ['/']\n", 'holds "/"; write a slash and one word'),
        ("[session_reset]\nreset_triggers = [' /new']\n", 'holds " /new"; write'),
        ("[commands]\nadmins = ['ou_9']\n", 'holds "ou_9"; write platform:user id, as in "feishu:ou_9"'),
        ("[commands]\nadmin_only = ['new plan']\n", 'holds "new plan"; write names of commands, as in "new"'),
        ("[platforms.slack]\nadmin_only = ['//new']\n", 'holds "//new"; write names of commands'),
    ],
)
def test_a_mistake_is_named_with_its_place(load, text, said):
    with pytest.raises(ConfigError, match=said):
        load(text)
