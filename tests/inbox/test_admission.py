"""The gate of a gateway: strangers, codes, refusals, recalls; and that nothing of a refused message is kept."""

from __future__ import annotations

import asyncio
import re

import pytest

from hermes_core.inbox.admission import Admission
from hermes_core.inbox.pairing import CODE_LIFE_MS, MOST_OPEN
from hermes_core.inbox.refusals import MOST, RefusalBook
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Begin
from hermes_hookspecs.principal import ADMIN, OPERATOR
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.specs.decisions import Allow, Ignore, Refuse
from hermes_hookspecs.state import StateUpdate


class Gate:
    """The admission of one platform of an open profile."""

    def __init__(self, app):
        self.app = app
        self.book = RefusalBook(app.store, app.clock)
        self.admission = Admission(
            app._acceptance,
            store=app.store,
            clock=app.clock,
            hooks=app.hooks,
            desk=app.desk,
            settings=app.settings,
            book=self.book,
            admits=False,
            wake=app.wake_servers,
        )
        self._number = 0

    def event(self, text="hello", user="u1", *, number=None, **fields):
        self._number += 1
        place = {"platform": "toy", "user_id": user, "chat_id": f"dm-{user}"}
        source = SessionSource(**(place | fields.pop("source", {})))
        identities = (f"m{self._number if number is None else number}",)
        return MessageEvent(source=source, text=text, identities=identities, received_at=1, **fields)

    def accept(self, *events, state=()):
        async def run():
            async with asyncio.timeout(20):
                results = await self.admission.accept(events, state)
                await self.book.write()
                return results

        return asyncio.run(run())

    def told(self):
        """Return what the outbox holds, oldest first."""
        return [one.text for one in reversed(self.app.outbox.list())]

    def code(self):
        return re.search(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}\b", self.told()[-1])[0]


@pytest.fixture
def gate(profile, clock):
    """Return a gate with these settings of its platform."""

    def make(*, plugins=(), **settings):
        chosen = {f"platforms.toy.{key}": value for key, value in settings.items()}
        return Gate(profile(chosen | {"inbox.batch_window_s": 0.0}, clock=clock, plugins=plugins))

    return make


def test_a_stranger_gets_a_code_and_nothing_of_the_message_is_kept(gate):
    door = gate()

    (result,) = door.accept(door.event("my secret"))

    assert result.id is None
    assert result.refused == "waits to be paired"
    assert door.app.store.stats().waiting == 0
    assert "my secret" not in "".join(door.told())
    assert len(door.told()) == 1


def test_the_operator_lets_a_stranger_in_by_the_code(gate):
    door = gate()
    door.accept(door.event(source={"user_name": "小明"}))

    pairing = door.app.gateway.approve(door.code().lower().replace("-", " "))
    (result,) = door.accept(door.event("now I am known"))

    assert (pairing.user_id, pairing.user_name, pairing.approved) == ("u1", "小明", True)
    assert result.id is not None
    assert [one.approved for one in door.app.gateway.pairings()] == [True]
    assert "You are let in" in door.told()[-1]


def test_a_code_is_good_once(gate):
    door = gate()
    door.accept(door.event())
    code = door.code()
    door.app.gateway.approve(code)

    with pytest.raises(ConfigError, match="no such code is open"):
        door.app.gateway.approve(code)


@pytest.mark.parametrize("code", ["", "-", "AAAA-AAAA", "你好", "x" * 5000])
def test_a_code_that_nobody_was_sent_lets_nobody_in(gate, code):
    door = gate()
    door.accept(door.event())

    with pytest.raises(ConfigError, match="no such code is open"):
        door.app.gateway.approve(code)

    assert [one.approved for one in door.app.gateway.pairings()] == [False]


def test_a_code_is_not_stored_in_a_form_that_anybody_could_use(gate):
    door = gate()
    door.accept(door.event())

    held = "".join(entry.value for entry in door.app.store.states("access", now=door.app.clock.now()))

    assert door.code() not in held
    assert door.code().replace("-", "") not in held


def test_a_stranger_who_goes_on_writing_gets_no_second_code_until_the_first_expires(gate, clock):
    door = gate()
    door.accept(door.event(), door.event())
    door.accept(door.event())
    first = door.code()

    assert len(door.told()) == 1
    clock.advance(CODE_LIFE_MS / 1000 + 1)
    door.accept(door.event())

    assert len(door.told()) == 2
    assert door.code() != first
    with pytest.raises(ConfigError):
        door.app.gateway.approve(first)


def test_only_so_many_codes_are_open_at_a_time(gate):
    door = gate()

    results = door.accept(*(door.event(user=f"u{number}") for number in range(MOST_OPEN + 3)))

    assert len(door.told()) == MOST_OPEN
    assert [one.refused for one in results[-3:]] == ["too many ask to be paired"] * 3


def test_who_is_revoked_is_a_stranger_again(gate):
    door = gate()
    door.accept(door.event())
    door.app.gateway.approve(door.code())

    (revoked,) = door.app.gateway.revoke("u1")
    (result,) = door.accept(door.event())

    assert revoked.approved
    assert result.id is None
    assert door.app.gateway.revoke("nobody") == []


def test_a_pairing_is_of_one_workspace_and_of_one_account(gate):
    door = gate()
    door.accept(door.event(source={"scope_id": "T1"}))
    door.app.gateway.approve(door.code())

    same, other_scope, other_account = door.accept(
        door.event(source={"scope_id": "T1"}),
        door.event(source={"scope_id": "T2"}),
        door.event(source={"scope_id": "T1", "account_id": "second"}),
    )

    assert same.id is not None
    assert other_scope.id is other_account.id is None


def test_who_was_paired_by_one_id_is_known_when_a_more_stable_one_appears(gate):
    door = gate()
    door.accept(door.event())
    door.app.gateway.approve(door.code())

    (result,) = door.accept(door.event(source={"user_id_alt": "on_1"}))

    assert result.id is not None


def test_an_unknown_member_of_a_group_is_ignored_silently_and_counted(gate):
    door = gate()
    group = {"chat_type": "group", "chat_id": "g1"}

    results = door.accept(door.event(source=group), door.event(source=group), door.event(source=group, addressed=False))

    (refusal,) = door.app.gateway.refusals()
    assert [one.id for one in results] == [None] * 3
    assert door.told() == []
    assert (refusal.user_id, refusal.chat_id, refusal.count) == ("u1", "g1", 2)
    assert "allow list" in refusal.reason


def test_refusals_are_told_with_the_identity_alone(gate, ear):
    heard = []

    class Listener:
        @hookimpl
        def hermes_after_message_refused(self, event, reason):
            heard.append((event, reason))

    door = gate(dm_policy="allowlist", plugins=(Listener(),))
    door.accept(door.event("my secret"))
    door.app.hooks.flush()

    ((event, reason),) = heard
    assert (event.text, event.attachments, event.source.user_id) == ("", (), "u1")
    assert reason == "not on the allow list"


def test_a_crowd_of_refused_people_is_counted_together_beyond_a_bound(gate):
    door = gate(dm_policy="allowlist")

    door.accept(*(door.event(user=f"u{number}") for number in range(MOST + 30)))
    door.accept(*(door.event(user=f"w{number}") for number in range(50)))

    refusals = door.app.gateway.refusals()
    assert len(refusals) <= MOST + 1
    assert sum(one.count for one in refusals) == MOST + 80


@pytest.mark.parametrize(
    ("decision", "taken", "replies"),
    [(Allow(), True, []), (Ignore(reason="no"), False, []), (Refuse(reason="no", reply="go away"), False, ["go away"])],
)
def test_hermes_decide_access_of_a_plugin_comes_before_the_built_in_rule(gate, decision, taken, replies):
    class Bouncer:
        @hookimpl
        def hermes_decide_access(self, event):
            return decision

    door = gate(plugins=(Bouncer(),))

    (result,) = door.accept(door.event())

    assert (result.id is not None) == taken
    assert door.told() == replies


class _Usher:
    """Lets everybody in, with these roles."""

    def __init__(self, *roles):
        self.roles = frozenset(roles)

    @hookimpl
    def hermes_decide_access(self, event):
        return Allow(roles=self.roles)


def test_the_roles_that_a_plugin_gives_a_sender_stand_in_the_row_and_in_its_principal(gate):
    door = gate(plugins=(_Usher("vip", ADMIN),))

    (result,) = door.accept(door.event())

    source = door.app.store.inbox_item(result.id).source
    assert source.roles == (ADMIN, "vip")
    assert door.app.principal(source).roles == {ADMIN, "vip"}


def test_an_adapter_gives_nobody_a_role_whoever_lets_the_message_in(gate):
    claimed = {"roles": (ADMIN,)}

    for door in (gate(dm_policy="open"), gate(plugins=(_Usher(),))):
        (result,) = door.accept(door.event(source=claimed))

        assert door.app.store.inbox_item(result.id).source.roles == ()


def test_a_role_of_a_list_in_the_settings_is_not_stored_and_ends_with_its_line(gate):
    door = gate(admins=("u1",))

    (result,) = door.accept(door.event())

    source = door.app.store.inbox_item(result.id).source
    assert source.roles == ()
    assert door.app.principal(source).roles == {ADMIN}


def test_a_plugin_that_calls_somebody_the_operator_lets_nobody_in(gate):
    class Flatterer:
        @hookimpl
        def hermes_decide_access(self, event):
            return Allow(roles={OPERATOR})

    door = gate(plugins=(Flatterer(),))

    (result,) = door.accept(door.event())

    assert result.id is None
    assert door.app.principal(SessionSource(platform="toy", chat_id="c", roles=(OPERATOR,))).sees_all is False


@pytest.mark.parametrize("roles", ["admin", {""}, {7}, None])
def test_what_is_no_set_of_names_is_no_set_of_roles(roles):
    with pytest.raises(TypeError):
        Allow(roles=roles)


def test_hermes_decide_access_that_fails_lets_nobody_in(gate):
    class Broken:
        @hookimpl
        def hermes_decide_access(self, event):
            raise RuntimeError("no idea")

    door = gate(dm_policy="open", plugins=(Broken(),))

    (result,) = door.accept(door.event())

    assert result.id is None
    assert door.app.store.stats().waiting == 0


def test_the_cursor_of_the_adapter_goes_on_although_everything_was_refused(gate):
    door = gate(dm_policy="off")

    door.accept(door.event(), state=[StateUpdate(namespace="toy", key="cursor", value='"7"')])

    assert door.app.store.state("toy", "cursor", now=door.app.clock.now()).value == '"7"'


def test_results_keep_the_order_of_the_batch(gate):
    door = gate(dm_policy="allowlist", allow_users=("friend",))

    results = door.accept(door.event(), door.event(user="friend"), door.event(), door.event(user="friend", number=2))

    assert [bool(one.refused) for one in results] == [True, False, True, False]
    assert results[3].duplicate
    assert results[3].id == results[1].id


def test_two_bots_do_not_talk_for_ever(gate):
    door = gate(dm_policy="off", bots="all", group_policy="open")
    group = {"chat_type": "group", "chat_id": "g1"}
    robot = {**group, "is_bot": True, "user_id": "robot"}

    results = door.accept(*(door.event(source=robot) for _ in range(12)))
    door.accept(door.event(source=group))
    (after,) = door.accept(door.event(source=robot))

    assert [one.id is not None for one in results] == [True] * 10 + [False] * 2
    assert after.id is not None


# --- recalls


def test_a_message_that_waits_is_withdrawn_when_it_is_taken_back(gate):
    door = gate(dm_policy="open")
    (taken,) = door.accept(door.event("take this back", number="a"))

    (result,) = door.accept(door.event("", recalls="ma"))

    assert result.id == taken.id
    assert door.app.store.inbox_item(taken.id).status == "withdrawn"
    assert door.told() == []


def test_a_recall_in_the_batch_of_its_message_withdraws_it_and_the_cursor_goes_on(gate):
    door = gate(dm_policy="open")
    state = [StateUpdate(namespace="toy", key="cursor", value='"9"')]

    first, second = door.accept(door.event("oops", number="a"), door.event("", recalls="ma"), state=state)

    assert first.id == second.id
    assert door.app.store.inbox_item(first.id).status == "withdrawn"
    assert door.app.store.state("toy", "cursor", now=door.app.clock.now()).value == '"9"'


def test_a_recall_that_overtakes_its_message_keeps_it_out(gate):
    door = gate(dm_policy="open")
    door.accept(door.event("", recalls="ma"))

    (late,) = door.accept(door.event("take this back", number="a"))

    assert late.duplicate
    assert door.app.store.stats().waiting == 0


def test_a_message_that_is_being_answered_is_left_and_its_sender_is_told_once(gate):
    door = gate(dm_policy="open")
    (taken,) = door.accept(door.event("a long task", number="a"))
    _begin(door, taken.id)

    door.accept(door.event("", recalls="ma"))
    door.accept(door.event("", recalls="ma"))

    assert door.app.store.inbox_item(taken.id).status == "claimed"
    assert door.told() == ["That message is being answered already. /stop ends that."]


def test_nobody_who_is_not_let_in_takes_anything_back(gate):
    door = gate(dm_policy="allowlist", allow_users=("u1",))
    (taken,) = door.accept(door.event("mine", number="a"))

    door.accept(door.event("", user="u2", recalls="ma"))

    assert door.app.store.inbox_item(taken.id).status == "pending"


def _begin(door, inbox_id):
    from hermes_core.leases import holder_here
    from hermes_hookspecs.ids import new_turn_id
    from hermes_hookspecs.messages import USER, MessageDraft

    store, now = door.app.store, door.app.clock.now()
    item = store.inbox_item(inbox_id)
    entry = door.app.get_or_create_session(item.source)
    draft = MessageDraft(role=USER, content=item.text, timestamp=now, inbox_id=item.id)
    store.apply(
        Begin(
            lineage_id=entry.lineage_id,
            turn_id=new_turn_id(now),
            holder=holder_here(item.entrance, item.session_key),
            now=now,
            ttl_ms=30_000,
            drafts=(draft,),
        )
    )


def test_an_admin_of_the_configuration_reads_and_acts_as_one(gate):
    door = gate(admins=("on_boss",))
    boss = SessionSource(platform="toy", chat_id="c", user_id="ou_1", user_id_alt="on_boss")

    assert ADMIN in door.app.principal(boss).roles
    assert ADMIN not in door.app.principal(SessionSource(platform="toy", chat_id="c", user_id="ou_2")).roles
    assert ADMIN not in door.app.principal(SessionSource(platform="other", chat_id="c", user_id="on_boss")).roles
