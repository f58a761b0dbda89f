"""Who is let in: the built-in rule, by the tables of the configuration."""

from __future__ import annotations

import pytest

from hermes_core.config import load_settings
from hermes_core.config.access import access_of
from hermes_core.inbox.access import UNADDRESSED, decide
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.principal import ADMIN
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.specs.decisions import Allow

FILE = """
[platforms.toy]
allow_users = ["friend"]
deny_users = ["pest"]
allow_chats = ["club"]
admins = ["boss"]

[platforms.toy.chats.hall]
group_policy = "open"
require_mention = false
deny_users = ["heckler"]

[platforms.toy.chats.den]
allow_users = ["guest"]

[platforms.toy.chats.vault]
group_policy = "off"
"""


@pytest.fixture
def settings_of(tmp_path):
    """Return a function of the configuration's text."""

    def make(text=FILE):
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        return load_settings(tmp_path, None, {}, {})

    return make


@pytest.fixture
def rule(settings_of):
    """Return a function that says what becomes of a message: ``in``, ``pairing``, or why it is ignored."""

    def ask(user, chat=None, *, text=FILE, paired=False, addressed=True, admits=False, **fields):
        place = (
            {"chat_type": "dm", "chat_id": f"dm-{user}"} if chat is None else {"chat_type": "group", "chat_id": chat}
        )
        source = SessionSource(**({"platform": "toy", "user_id": user} | place | fields))
        event = MessageEvent(source=source, text="hello", received_at=1, addressed=addressed)
        access = access_of(settings_of(text), "toy", source.chat_id, source.parent_chat_id, admits=admits)
        decision = decide(event, access, paired=paired)
        if decision is None:
            return "pairing"
        return "in" if isinstance(decision, Allow) else decision.reason

    return ask


@pytest.mark.parametrize(
    ("user", "paired", "expected"),
    [("stranger", False, "pairing"), ("stranger", True, "in"), ("friend", False, "in"), ("boss", False, "in")],
)
def test_by_default_a_stranger_is_asked_to_pair_and_who_is_known_comes_in(rule, user, paired, expected):
    assert rule(user, paired=paired) == expected


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("chat", [None, "club", "hall"])
def test_the_deny_list_wins_over_everything(rule, chat, paired):
    assert rule("pest", chat, paired=paired) == "on the deny list"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("open", "in"), ("allowlist", "not on the allow list"), ("off", "direct messages are off")],
)
def test_the_policy_of_direct_messages_decides_about_strangers(rule, policy, expected):
    text = f'[platforms.toy]\ndm_policy = "{policy}"\n'

    assert rule("stranger", text=text) == expected


def test_direct_messages_that_are_off_are_off_for_friends_too(rule):
    assert rule("friend", text='[platforms.toy]\ndm_policy = "off"\nallow_users = ["friend"]\n') != "in"


def test_the_stable_id_of_a_person_may_stand_in_a_list_as_well_as_the_plain_one(rule):
    assert rule("plain", user_id_alt="friend") == "in"


def test_a_group_that_is_not_listed_hears_nothing_but_who_is_known_is_answered_there(rule):
    assert rule("stranger", "street") == "neither this group nor its sender is on the allow list"
    assert rule("friend", "street") == "in"
    assert rule("stranger", "street", paired=True) == "in"


def test_everybody_in_a_listed_group_and_its_threads_is_let_in(rule):
    assert rule("stranger", "club") == "in"
    assert rule("stranger", "thread-7", parent_chat_id="club") == "in"


def test_the_table_of_a_chat_stands_above_its_platform(rule):
    assert rule("stranger", "hall", addressed=False) == "in"
    assert rule("heckler", "hall") == "on the deny list"
    assert rule("guest", "den") == "in"
    assert rule("guest", "street") != "in"
    assert rule("friend", "vault") == "groups are off"


def test_where_only_known_people_are_taken_a_listed_group_helps_nobody(rule):
    text = '[platforms.toy]\ngroup_policy = "known"\nallow_chats = ["club"]\n'

    assert rule("stranger", "club", text=text) == "an unknown member of a group"
    assert rule("stranger", "club", text=text, paired=True) == "in"


def test_what_is_not_addressed_to_us_in_a_group_is_passed_over_before_anything_else(rule):
    assert rule("friend", "club", addressed=False) == UNADDRESSED
    assert rule("stranger", "street", addressed=False) == UNADDRESSED
    assert rule("friend", addressed=False) == "in"


@pytest.mark.parametrize(
    ("bots", "addressed", "expected"),
    [("off", True, "a bot"), ("mentions", True, "in"), ("mentions", False, "a bot"), ("all", False, "in")],
)
def test_other_bots_are_taken_where_the_configuration_says_so(rule, bots, addressed, expected):
    text = f'[platforms.toy]\nbots = "{bots}"\nallow_chats = ["club"]\nrequire_mention = false\n'

    assert rule("robot", "club", text=text, is_bot=True, addressed=addressed) == expected


def test_a_bot_is_never_asked_to_pair(rule):
    assert rule("robot", text='[platforms.toy]\nbots = "all"\n', is_bot=True) == "not on the allow list"


def test_who_comes_by_a_secret_of_the_operator_is_let_in_unless_a_policy_is_set(rule):
    assert rule("stranger", text="", admits=True) == "in"
    assert rule("stranger", "street", text="", admits=True, addressed=False) == "in"
    assert rule("stranger", text='[platforms.toy]\ndm_policy = "allowlist"\n', admits=True) == "not on the allow list"


def test_a_sender_without_any_id_is_no_stranger_to_pair_with(rule):
    assert rule(None) == "not on the allow list"


def test_an_admin_of_the_configuration_gets_the_role(settings_of):
    access = access_of(settings_of(), "toy", "c")
    event = MessageEvent(source=SessionSource(platform="toy", user_id="boss", chat_id="c"), text="x", received_at=1)

    decision = decide(event, access, paired=False)

    assert isinstance(decision, Allow)
    assert decision.roles == {ADMIN}


def test_an_unknown_platform_has_the_defaults(settings_of):
    access = access_of(settings_of(), "elsewhere", "c")

    assert (access.dm_policy, access.group_policy, access.require_mention, access.bots) == (
        "pairing",
        "allowlist",
        True,
        "off",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[platforms.toy]\ndm_policy = "opne"\n', 'did you mean "open"'),
        ("[platforms.toy.chats.c]\nrequire_mentions = true\n", 'did you mean "require_mention"'),
        ('[platforms.toy.chats.c]\nrequire_mention = "yes"\n', "write true or false"),
        ('[platforms.toy]\nallow_users = "ou_1"\n', "write a list of texts"),
    ],
)
def test_a_mistake_in_the_tables_is_told_with_its_place(settings_of, text, said):
    with pytest.raises(ConfigError, match=r"config\.toml:2: .*") as told:
        settings_of(text)

    assert said in str(told.value)
