"""What the state machine draws from: few keys, people, titles and texts, so that they meet often."""

from __future__ import annotations

from hypothesis import strategies as st

from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, Attachment, MessageDraft
from hermes_hookspecs.outbox import ANSWER, NOTICE, PartDraft
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.state import CONVERSATION, StateUpdate
from hermes_hookspecs.testing.scene import asking, holder_at, key_of, result, saying, source_at
from hermes_hookspecs.turns import Usage

__all__ = [
    "ENTRANCES",
    "IDENTITIES",
    "KEYS",
    "TITLES",
    "USERS",
    "Answer",
    "agains",
    "answers",
    "carried",
    "drafts_in",
    "file_lists",
    "flags",
    "holders",
    "keys",
    "maybe_flags",
    "numbers",
    "part_lists",
    "places",
    "policies",
    "row_lists",
    "sources",
    "texts",
    "titles",
    "tries",
    "updates",
    "usages",
]

Answer = tuple[str, SessionSource, str, str, tuple[Attachment, ...]]
"""Key, target, text, kind and files of what is to be delivered."""

KEYS = tuple(key_of(name) for name in ("a", "b", "c"))
USERS = ("ou_1", "ou_2")
TITLES = ("plan", "plan #2", "日志")
TEXTS = ("hello", "查看日志", "needle LOG", "nul\x00 \u202e", "half \ud800!")
ENTRANCES = (Entrance("feishu"), Entrance("slack"))
IDENTITIES = ("m1", "m2", "m3", "m4")

keys = st.sampled_from(KEYS)
flags = st.booleans()
maybe_flags = st.sampled_from([None, True, False])
numbers = st.integers(0, 7)
texts = st.sampled_from(TEXTS)
titles = st.sampled_from(TITLES)
sources = st.builds(
    SessionSource,
    platform=st.sampled_from(["feishu", "slack"]),
    chat_type=st.sampled_from(["dm", "group"]),
    chat_id=st.sampled_from(["oc_1", "oc_2"]),
    user_id=st.sampled_from(USERS),
    user_name=st.sampled_from([None, "Ada"]),
    scope_id=st.sampled_from([None, "T1"]),
    thread_id=st.sampled_from([None, None, "t_1"]),
    profile=st.sampled_from(["main", "main", "other"]),
)
places = st.sampled_from([source_at("oc_1"), source_at("oc_1"), source_at("oc_2")])
"""Two addresses, so that deliveries queue up behind each other and messages come from where they go."""
policies = st.builds(KeyPolicy, group_sessions_per_user=flags)
rows = st.one_of(
    texts.map(saying),
    st.builds(saying, texts, st.sampled_from(["user", "system", "robot"]), st.integers(0, 9)),
    st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, max_size=2).map(lambda ids: asking(*ids)),
    st.builds(result, st.sampled_from(["c1", "c2", "c3"]), texts),
)
row_lists = st.lists(rows, max_size=3).map(tuple)
counts = st.sampled_from([None, 0, 1, 7])
usages = st.builds(Usage, input_tokens=counts, output_tokens=counts, estimated_cost_usd=st.sampled_from([None, 0.25]))
updates = st.builds(
    StateUpdate,
    namespace=st.sampled_from(["p", "p", CONVERSATION]),
    key=st.sampled_from(["a1", "a2", "b"]),
    value=st.sampled_from(["1", '"日志"', None]),
    expected_version=st.sampled_from([None, None, 0, 1, 2]),
    person=st.sampled_from([None, "ou_1"]),
)
carried = st.sampled_from([None, None, MessageDraft(role=SYSTEM, content="before", kind=KIND_SUMMARY, timestamp=0)])
holders = st.builds(holder_at, st.sampled_from(["pts-1", "pts-2"]), st.just(100), st.sampled_from([*KEYS, None]))
drafts_in = st.tuples(
    keys,
    places | sources,
    texts,
    st.lists(st.sampled_from(IDENTITIES), max_size=2).map(tuple),
    st.sampled_from(["message", "message", "message", "internal", "control"]),
    st.sampled_from(["", "", "", "broken"]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([None, None, None, holder_at()]),
)
"""Key, source, text, identities, kind, error, only-if-idle and waiter of a message that comes in."""
files = st.builds(
    Attachment,
    kind=st.sampled_from(["image", "document"]),
    name=st.sampled_from(["a.png", "报告.pdf"]),
    media_type=st.sampled_from(["", "image/png"]),
    size=st.sampled_from([0, 7]),
    sha256=st.sampled_from(["0" * 64, "f" * 64]),
)
file_lists = st.lists(files, max_size=2).map(tuple)
answers = st.lists(
    st.tuples(
        st.sampled_from(["d1", "d2", "d3", "d4"]),
        places | sources,
        texts,
        st.sampled_from([ANSWER, NOTICE]),
        file_lists,
    ),
    max_size=2,
)
part_lists = st.lists(st.builds(PartDraft, text=texts, file=st.none() | files), min_size=1, max_size=3).map(tuple)
tries = st.tuples(st.sampled_from(["", "defer", "await", "await", "await", "fail"]), flags, flags, flags)
"""How an attempt to send ends; whether a part may have gone out, it failed, a message came meanwhile."""
agains = st.sampled_from(["none", "all", "some"])
"""Which messages of a turn wait again when it ends."""
