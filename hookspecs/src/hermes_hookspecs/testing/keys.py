"""The suite of a key builder: equal sources have equal keys, different ones never do."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.source import DEFAULT_ACCOUNT, KeyPolicy, SessionSource
from hermes_hookspecs.testing.completeness import CompleteSuite

if TYPE_CHECKING:
    from hermes_hookspecs.ports.policies import KeyBuilder

__all__ = ["KeyBuilderSuite"]

KEY_LIMIT = 512
POLICIES = tuple(
    KeyPolicy(group_sessions_per_user=g, thread_sessions_per_user=t) for g in (True, False) for t in (True, False)
)
PIECES = (
    "a",
    "A",
    "%",
    ":",
    "=",
    " ",
    "%3A",
    "%h",
    "\n",
    "\x00",
    "\x7f",
    "\u0085",
    "\u2028",
    "e\u0301",
    "é",
    "日",
    "志",
    "\U0001f600",
    "chat=",
)

hostile_ids = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join)
anything = st.one_of(hostile_ids, st.text(st.characters(exclude_categories=()), min_size=1, max_size=5))
few_ids = st.sampled_from(["a", "b", "a:user=b", "a%3Auser=b", "default", "A"])
maybe_id = st.one_of(st.none(), few_ids, anything)
words = st.sampled_from(["main", "feishu", "slack", "dm", "group:chat=a"])
policies = st.sampled_from(POLICIES)
sources = st.builds(
    SessionSource,
    platform=st.sampled_from(["feishu", "slack", "web:hook"]),
    chat_type=st.sampled_from(["dm", "group", "channel", "thread", "forum"]),
    account_id=st.one_of(st.just(DEFAULT_ACCOUNT), few_ids, anything),
    scope_id=maybe_id,
    chat_id=maybe_id,
    thread_id=st.one_of(st.none(), maybe_id),
    prospective_thread_id=st.one_of(st.none(), st.none(), few_ids),
    user_id=maybe_id,
    user_id_alt=st.one_of(st.none(), maybe_id),
    profile=st.one_of(st.just("main"), words, anything),
)
quick = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)

_DM = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
_GROUP = attrs.evolve(_DM, chat_type="group")
_THREAD = attrs.evolve(_GROUP, thread_id="t_1")


def _identity(source: SessionSource, policy: KeyPolicy, scoped: frozenset[str]) -> tuple[str | None, ...] | None:
    """Return who is in the key by the rules of ``design.md`` section 5, ``None`` where they leave it open."""
    thread, chat, user = source.thread_id, source.chat_id, source.participant
    if source.chat_type == "dm":
        user = None if chat is not None else user
        if chat is None and user is None:
            return None
    else:
        if chat is None:
            return None
        thread = thread or source.prospective_thread_id
        per_user = policy.thread_sessions_per_user if thread else policy.group_sessions_per_user
        user = user if per_user else None
    account = None if source.account_id == DEFAULT_ACCOUNT else source.account_id
    scope = source.scope_id if source.platform in scoped else None
    return (source.profile, source.platform, source.chat_type, account, scope, chat, thread, user)


class KeyBuilderSuite(CompleteSuite):
    """What every key builder does. A subclass gives the fixture ``builder``.

    Attributes:
        scoped: platforms whose scope is part of the key.
    """

    scoped: ClassVar[frozenset[str]] = frozenset({"slack"})

    @pytest.fixture
    def builder(self) -> KeyBuilder:
        """Return the builder under test. To be overridden."""
        raise NotImplementedError("a subclass of KeyBuilderSuite gives the fixture `builder`")

    # taken apart
    @pytest.mark.parametrize(
        "text", ["", "x", "agent", "agent:main", "agent:main:feishu", "user:main:feishu:dm:chat=a", "日志", "a" * 600]
    )
    def test_what_is_no_key_cannot_be_parsed(self, builder: KeyBuilder, text: str) -> None:
        with pytest.raises(ValueError, match=r".+"):
            builder.parse(text)  # type: ignore[arg-type]  # it is no key: that is the point

    def test_the_same_source_has_the_same_key_again(self, builder: KeyBuilder) -> None:
        assert builder.build(_GROUP, KeyPolicy()) == builder.build(attrs.evolve(_GROUP), KeyPolicy())
        assert builder.version >= 1

    # long and hostile ids
    @pytest.mark.parametrize("fake", ["oc_1:user=ou_1", "oc_1%3Auser%3Dou_1", "oc_1%3Auser=ou_1"])
    def test_an_id_that_looks_like_a_piece_of_a_key_is_text(self, builder: KeyBuilder, fake: str) -> None:
        room = attrs.evolve(_GROUP, chat_id=fake, user_id=None)
        policy = KeyPolicy(group_sessions_per_user=False)

        assert builder.build(room, policy) != builder.build(_GROUP, KeyPolicy())
        assert builder.parse(builder.build(room, policy)).chat_id == fake

    def test_long_ids_are_kept_apart(self, builder: KeyBuilder) -> None:
        long = "x" * 600
        sources = [
            attrs.evolve(_GROUP, chat_id=long + "a", user_id=long + "a"),
            attrs.evolve(_GROUP, chat_id=long + "b", user_id=long + "a"),
            attrs.evolve(_GROUP, chat_id=long + "a", user_id=long + "b"),
            attrs.evolve(_GROUP, chat_id="日" * 600, user_id="%" * 600, account_id=":" * 600, profile="=" * 600),
        ]

        keys = [builder.build(source, KeyPolicy()) for source in sources]

        assert len(set(keys)) == len(keys)
        assert max(map(len, keys)) <= KEY_LIMIT
        assert keys == [builder.build(source, KeyPolicy()) for source in sources]
        for key in keys:
            assert builder.parse(key).chat_type == "group"

    def test_an_id_that_looks_like_a_shortened_one_is_another(self, builder: KeyBuilder) -> None:
        long = attrs.evolve(_DM, chat_id="x" * 600)
        shown = builder.parse(builder.build(long, KeyPolicy())).chat_id

        imposter = attrs.evolve(_DM, chat_id=shown)

        assert builder.build(imposter, KeyPolicy()) != builder.build(long, KeyPolicy())

    @pytest.mark.parametrize(
        ("one", "other"),
        [("oc_a", "oc_A"), ("ß", "ss"), ("é", "e\u0301"), ("ﬁ", "fi"), ("a", "a "), ("İ", "i"), ("1", "１")],
    )
    def test_ids_are_never_folded(self, builder: KeyBuilder, one: str, other: str) -> None:
        keys = {builder.build(attrs.evolve(_DM, chat_id=each), KeyPolicy()) for each in (one, other)}

        assert len(keys) == 2

    # who is in the key
    def test_keys_are_written_as_the_grammar_says(self, builder: KeyBuilder) -> None:
        source = attrs.evolve(_GROUP, user_id_alt="on_a")

        assert builder.build(source, KeyPolicy()) == "agent:main:feishu:group:chat=oc_1:user=on_a"

    def test_the_default_account_is_never_in_a_key(self, builder: KeyBuilder) -> None:
        second = attrs.evolve(_DM, account_id="second")

        assert "account" not in builder.build(_DM, KeyPolicy())
        assert builder.parts(_DM, KeyPolicy()).account_id is None
        assert builder.parts(second, KeyPolicy()).account_id == "second"
        assert builder.build(second, KeyPolicy()) != builder.build(_DM, KeyPolicy())

    def test_a_scope_keeps_workspaces_apart(self, builder: KeyBuilder) -> None:
        for platform in sorted(self.scoped):
            first, second = (attrs.evolve(_DM, platform=platform, scope_id=scope) for scope in ("T1", "T2"))

            assert builder.parts(first, KeyPolicy()).scope_id == "T1"
            assert builder.build(first, KeyPolicy()) != builder.build(second, KeyPolicy())

    def test_a_direct_message_is_its_chat(self, builder: KeyBuilder) -> None:
        other_id = attrs.evolve(_DM, user_id="ou_2")

        assert builder.build(_DM, KeyPolicy()) == builder.build(other_id, KeyPolicy())
        assert not builder.parts(_DM, KeyPolicy()).shared

    def test_a_direct_message_without_a_chat_is_its_sender(self, builder: KeyBuilder) -> None:
        sender = attrs.evolve(_DM, chat_id=None)

        assert builder.parts(sender, KeyPolicy()).user_id == "ou_1"
        assert builder.build(sender, KeyPolicy()) != builder.build(attrs.evolve(sender, user_id="ou_2"), KeyPolicy())

    @pytest.mark.parametrize("policy", POLICIES)
    def test_a_direct_message_without_anything_is_refused(self, builder: KeyBuilder, policy: KeyPolicy) -> None:
        nobody = SessionSource(platform="feishu")

        with pytest.raises(KeyBuildError):
            builder.build(nobody, policy)
        with pytest.raises(KeyBuildError):
            builder.parts(nobody, policy)

    @pytest.mark.parametrize(
        ("where", "per_group", "per_thread", "shared"),
        [
            (_GROUP, True, False, False),
            (_GROUP, True, True, False),
            (_GROUP, False, False, True),
            (_GROUP, False, True, True),
            (_THREAD, True, False, True),
            (_THREAD, False, False, True),
            (_THREAD, True, True, False),
            (_THREAD, False, True, False),
        ],
    )
    def test_sharing_follows_the_policy_of_the_place(
        self, builder: KeyBuilder, where: SessionSource, per_group: bool, per_thread: bool, shared: bool
    ) -> None:
        policy = KeyPolicy(group_sessions_per_user=per_group, thread_sessions_per_user=per_thread)
        neighbour = attrs.evolve(where, user_id="ou_2")

        assert builder.parts(where, policy).shared is shared
        assert (builder.build(where, policy) == builder.build(neighbour, policy)) is shared

    def test_a_thread_is_not_its_room(self, builder: KeyBuilder) -> None:
        shared = KeyPolicy(group_sessions_per_user=False)

        assert builder.build(_THREAD, shared) != builder.build(_GROUP, shared)

    def test_a_thread_to_come_has_the_key_of_the_thread(self, builder: KeyBuilder) -> None:
        coming = attrs.evolve(_GROUP, prospective_thread_id="t_1")

        assert builder.build(coming, KeyPolicy()) == builder.build(_THREAD, KeyPolicy())

    def test_a_thread_that_is_there_counts_more_than_one_to_come(self, builder: KeyBuilder) -> None:
        both = attrs.evolve(_THREAD, prospective_thread_id="t_2")

        assert builder.build(both, KeyPolicy()) == builder.build(_THREAD, KeyPolicy())

    def test_a_direct_message_has_no_thread_to_come(self, builder: KeyBuilder) -> None:
        coming = attrs.evolve(_DM, prospective_thread_id="t_1")

        assert builder.build(coming, KeyPolicy()) == builder.build(_DM, KeyPolicy())
        assert builder.build(attrs.evolve(_DM, thread_id="t_1"), KeyPolicy()) != builder.build(_DM, KeyPolicy())

    def test_a_room_whose_sender_is_unknown_is_shared_and_says_so(self, builder: KeyBuilder) -> None:
        unknown = attrs.evolve(_GROUP, user_id=None)

        parts = builder.parts(unknown, KeyPolicy())

        assert (parts.user_id, parts.shared) == (None, True)
        assert parts.note
        assert builder.parts(_GROUP, KeyPolicy()).note == ""

    # older forms
    def test_the_plain_id_is_an_older_form_of_the_alternative_one(self, builder: KeyBuilder) -> None:
        known = attrs.evolve(_GROUP, user_id_alt="on_1")

        assert builder.build(_GROUP, KeyPolicy()) in builder.alternatives(known, KeyPolicy())
        assert builder.build(known, KeyPolicy()) not in builder.alternatives(known, KeyPolicy())

    @pytest.mark.parametrize("source", [_GROUP, _DM, attrs.evolve(_THREAD, user_id_alt="on_1")])
    def test_a_key_without_the_alternative_id_has_no_older_form(
        self, builder: KeyBuilder, source: SessionSource
    ) -> None:
        assert list(builder.alternatives(source, KeyPolicy())) == []

    # for any source
    @quick
    @given(one=sources, other=sources, policy=policies)
    def test_sources_have_one_key_exactly_when_they_are_one(
        self, builder: KeyBuilder, one: SessionSource, other: SessionSource, policy: KeyPolicy
    ) -> None:
        first, second = (_identity(source, policy, self.scoped) for source in (one, other))
        assume(first is not None and second is not None)

        assert (builder.build(one, policy) == builder.build(other, policy)) == (first == second)

    @quick
    @given(source=sources, data=st.data(), policy=policies)
    def test_sources_that_differ_in_one_part_are_kept_apart(
        self, builder: KeyBuilder, source: SessionSource, data: st.DataObject, policy: KeyPolicy
    ) -> None:
        part = data.draw(st.sampled_from(["account_id", "scope_id", "chat_id", "thread_id", "user_id", "profile"]))
        value = data.draw(st.one_of(hostile_ids, few_ids))
        other = attrs.evolve(source, **{part: value})  # type: ignore[arg-type]  # all of these parts are text
        first, second = (_identity(each, policy, self.scoped) for each in (source, other))
        assume(first is not None and second is not None)

        assert (builder.build(source, policy) == builder.build(other, policy)) == (first == second)

    @quick
    @given(source=sources, labels=st.tuples(anything, anything), policy=policies)
    def test_labels_are_no_part_of_a_key(
        self, builder: KeyBuilder, source: SessionSource, labels: tuple[str, str], policy: KeyPolicy
    ) -> None:
        assume(_identity(source, policy, self.scoped) is not None)
        name, other = labels
        labelled = attrs.evolve(
            source, user_name=name, chat_name=other, chat_topic=name, parent_chat_id=other, message_id=name, is_bot=True
        )

        assert builder.build(labelled, policy) == builder.build(source, policy)

    @quick
    @given(source=sources, policy=policies)
    def test_a_key_is_short_and_printable(self, builder: KeyBuilder, source: SessionSource, policy: KeyPolicy) -> None:
        assume(_identity(source, policy, self.scoped) is not None)

        key = builder.build(source, policy)

        assert 0 < len(key) <= KEY_LIMIT
        assert not any(character.isspace() or ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in key)
        key.encode()

    @quick
    @given(source=sources, policy=policies)
    def test_a_key_can_be_parsed_back(self, builder: KeyBuilder, source: SessionSource, policy: KeyPolicy) -> None:
        assume(_identity(source, policy, self.scoped) is not None)
        parts = builder.parts(source, policy)

        parsed = builder.parse(builder.build(source, policy))

        assert parsed == attrs.evolve(parts, shared=parsed.shared, note=parsed.note)

    @quick
    @given(source=sources, policy=policies)
    def test_the_parts_say_who_is_in_the_key(
        self, builder: KeyBuilder, source: SessionSource, policy: KeyPolicy
    ) -> None:
        expected = _identity(source, policy, self.scoped)
        assume(expected is not None)

        parts = builder.parts(source, policy)

        assert expected == (
            parts.profile,
            parts.platform,
            parts.chat_type,
            parts.account_id,
            parts.scope_id,
            parts.chat_id,
            parts.thread_id,
            parts.user_id,
        )

    @quick
    @given(source=sources, policy=policies, other=st.sampled_from(["ou_x", "ou_y"]))
    def test_shared_is_what_the_key_says(
        self, builder: KeyBuilder, source: SessionSource, policy: KeyPolicy, other: str
    ) -> None:
        """Outside direct messages a session is shared exactly when another sender gets the same key."""
        assume(source.chat_type != "dm" and _identity(source, policy, self.scoped) is not None)
        assume(source.participant not in {None, other})
        neighbour = attrs.evolve(source, user_id=other, user_id_alt=None)

        same = builder.build(neighbour, policy) == builder.build(source, policy)

        assert builder.parts(source, policy).shared == same
