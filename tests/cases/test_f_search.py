"""Group F: finding what was said, with the full-text index and without one."""

from __future__ import annotations

import asyncio
import json

import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import SessionError, SessionNotFound
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.messages import TOOL, MessageDraft, ToolCall
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.scene import Scene, asking, saying

MOST = 100


@pytest.fixture(params=["scan", "fts5"])
def profile(request, tmp_path):
    """A profile that searches row by row, or by the index."""
    options = {"plugins": False}
    if request.param == "fts5":
        pytest.importorskip("hermes_fts5", reason="the index is a plugin")
        options = {"overrides": {"plugins.only": ("fts5",)}}
    with open_app(tmp_path / "home", environ={}, **options) as app:
        app.is_indexed = request.param == "fts5"
        yield app


def chat(number, user="ou_alice", platform="feishu"):
    return SessionSource(platform=platform, chat_id=f"oc_{number}", user_id=user)


@pytest.fixture
def tell(profile):
    """Return a function that says texts, each in a chat of its own, and indexes them all but the last."""

    def tell(*texts, user="ou_alice", platform="feishu", answer="noted"):
        results = []
        for text in texts:
            number = len(profile.store.summaries(operator(), limit=None))
            results.append(profile.ask(text, chat(number, user, platform), agent=lambda turn: answer))
            if text is not texts[-1]:
                profile.search_index.catch_up(budget_s=5.0)
        return results

    return tell


@pytest.fixture
def found(profile):
    """Return a function that gives the texts of the rows that a query finds."""

    def found(query, **fields):
        answer = profile.session_search(query, limit=MOST, budget_s=30.0, **fields)
        assert answer.complete
        assert "index" in answer.note or profile.is_indexed
        return sorted(next(row.content for row in one.messages if row.anchor) for one in answer.results)

    return found


def answer_or_mistake(profile, query, **fields):
    """Return the answer and no words, or none and what was said of the query."""
    try:
        return profile.session_search(query, **fields), ""
    except ValueError as error:
        return None, str(error)


# ------------------------------------------------------------------ F01

SURROUNDINGS = [
    "部署", "开始部署", "部署完成", "请部署一下", "部署nginx", "nginx部署", "「部署」", "部署,然后", "先部署。",
    "部署 完",
    "1部署2", "部署部署", "重新部署服务", "部署失败了吗", "自动部署", "部署-脚本", "部署/回滚", "(部署)", "部署：计划",
    "昨天部署",
]  # fmt: skip


def test_a_chinese_word_is_found_in_all_its_surroundings(tell, found):
    """F01 · NousResearch/hermes-agent#14829."""
    tell(*SURROUNDINGS, "四字成语", "カタカナのテスト", "한국어 시험")

    assert found("部署") == sorted(SURROUNDINGS)
    assert found("四字成语") == ["四字成语"]
    assert found("テスト") == ["カタカナのテスト"]
    assert found("국어") == ["한국어 시험"]


def test_filters_hold_for_every_script(tell, found):
    """F01 · NousResearch/hermes-agent#14829: source and role filters apply on every path."""
    tell("部署 deploy")
    tell("部署 deploy elsewhere", platform="weixin", answer="部署 deploy, said the agent")

    for word in ("部署", "deploy", "署"):
        assert found(word, source="feishu") == ["部署 deploy"]
        assert found(word, role_filter=("assistant",)) == ["部署 deploy, said the agent"]


# ------------------------------------------------------------------ F03


def test_latin_words_glued_to_chinese_are_found(tell, found):
    """F03 · NousResearch/hermes-agent#54242."""
    tell("把nginx服务重启", "编号qz已核对", "nothing of it")

    assert found("nginx") == ["把nginx服务重启"]
    assert found("nginx 重启") == ["把nginx服务重启"]
    assert found("qz") == ["编号qz已核对"]


# ------------------------------------------------------------------ F04, F05, F06

PUNCTUATION = [
    "what's", "docs/setup.md", "me@host.example", "75%", "#42", "x,y", "when?", "NOTE: later", ".bashrc", "ls -la",
    "--dry-run", "i.e.",
]  # fmt: skip


@pytest.mark.parametrize("query", PUNCTUATION)
def test_everyday_punctuation_is_text(tell, found, query):
    """F04 · NousResearch/hermes-agent#82152."""
    tell(f"he wrote {query} there", "something else altogether")

    assert found(query) == [f"he wrote {query} there"]


@pytest.mark.parametrize("query", ["", "   ", "\t\n"])
def test_an_empty_query_browses(tell, profile, query):
    """F04 · NousResearch/hermes-agent#82152."""
    tell("one", "two")

    answer = profile.session_search(query)

    assert (answer.mode, len(answer.results)) == ("browse", 2)


@pytest.mark.parametrize("query", ['"', "(", ")", '"open phrase', "(a OR b", "NOT", "OR", "*"])
def test_a_mistake_is_told_or_finds_text_and_is_never_no_hit_without_a_word(tell, profile, query):
    """F04 · NousResearch/hermes-agent#82152: a real query error is reported, never turned into zero hits."""
    tell(f"he wrote {query} there")

    answer, mistake = answer_or_mistake(profile, query, limit=MOST)

    assert len(mistake) > 10 if answer is None else len(answer.results) == 1


def test_hyphens_quotes_and_doubled_operators(tell, found):
    """F05 · NousResearch/hermes-agent#7824."""
    tell("only alpha", "the build-log is here", "beta too", "a nightly build ran", "build it nightly", "pre-commit ran")

    assert found("alpha OR build-log OR beta") == ["beta too", "only alpha", "the build-log is here"]
    assert found('"nightly build"') == ["a nightly build ran"]
    assert found("pre-commit") == ["pre-commit ran"]


@pytest.mark.parametrize("query", ["alpha OR OR beta", "AND alpha"])
def test_a_stray_operator_is_told_or_the_words_are_found(tell, profile, query):
    """F05 · NousResearch/hermes-agent#7824."""
    tell("only alpha")

    answer, mistake = answer_or_mistake(profile, query)

    assert ("AND" in mistake or "OR" in mistake) if answer is None else len(answer.results) == 1


def test_percent_and_underscore_are_no_wildcards(tell, found):
    """F06 · NousResearch/hermes-agent#16276."""
    tell("进度100%完成", "进度100了完成", "变量a_b值", "变量axb值")

    assert found("100%完成") == ["进度100%完成"]
    assert found("a_b值") == ["变量a_b值"]


# ------------------------------------------------------------------ F07


@pytest.mark.parametrize("query", ["鲸鱼", "鲸鱼*", "鲸"])
def test_all_surfaces_find_the_same(tell, profile, found, hermes, by_tool, query):
    """F07 · NousResearch/hermes-agent#90636."""
    tell("我看见鲸鱼了", "nothing of it")

    by_api = found(query)
    by_model = by_tool(profile, query=query)
    by_script = hermes("sessions", "search", query, "--json", *([] if profile.is_indexed else ["--no-plugins"]))

    assert by_api == ["我看见鲸鱼了"]
    assert len(by_model["results"]) == 1
    assert by_script.status == 0, by_script.err
    rows = json.loads(by_script.out)
    assert len(rows["results"] if isinstance(rows, dict) else rows) == 1


# ------------------------------------------------------------------ F08


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("自動ﾃｽﾄ結果", "ﾃｽﾄ"),
        ("自動ﾃｽﾄ結果", "テスト"),
        ("古字𠀀𠀁在此", "𠀁"),
        ("古字𠀀𠀁在此", "𠀀𠀁"),
        ("注音ㄅㄆㄇ符號", "ㄆㄇ"),
        ("자모ㄱㄴㄷ", "ㄴㄷ"),
        ("型号ＡＢＣ已到", "abc"),
        ("型号ABC已到", "ＡＢＣ"),
    ],
)
def test_rare_blocks_and_widths_are_found(tell, found, text, query):
    """F08 · thedotmack/claude-mem#3810."""
    tell(text, "nothing of it")

    assert found(query) == [text]


# ------------------------------------------------------------------ F09, F10, F12


def test_what_compression_took_out_of_the_context_is_found_by_its_own_child(profile):
    """F09 · NousResearch/hermes-agent#13840."""
    source = chat(1)
    entry = profile.ask("the code word is zanzibar", source, agent=lambda turn: "noted").entry
    for number in range(8):
        profile.ask(f"talk {number}", source, agent=lambda turn: "on and on")
    before = profile.session_search("zanzibar", own=entry.lineage_id)

    asyncio.run(profile.compress_session(entry.lineage_id, source))
    profile.ask("live words", source, agent=lambda turn: "yes")
    behind = profile.session_search("zanzibar", own=entry.lineage_id)
    live = profile.session_search('"live words"', own=entry.lineage_id)

    assert before.results == ()
    assert [one.lineage_id for one in behind.results] == [entry.lineage_id]
    assert live.results == ()


def test_a_hit_in_a_continuation_names_it_and_can_be_scrolled(profile):
    """F10 · NousResearch/hermes-agent#6507; F12 · NousResearch/hermes-agent#72279."""
    source = chat(1)
    entry = profile.ask("the beginning", source, agent=lambda turn: "noted").entry
    for _ in range(2):
        for number in range(6):
            profile.ask(f"talk {number}", source, agent=lambda turn: "on and on")
        asyncio.run(profile.compress_session(entry.lineage_id, source))
    last = profile.ask("only here: quokka", source, agent=lambda turn: "seen")

    (hit,) = profile.session_search("quokka").results
    around = profile.session_search(session_id=hit.session_id, around_message_id=hit.match_message_id)

    assert hit.session_id == last.entry.session_id != entry.session_id
    assert "quokka" in hit.snippet
    (anchor,) = [row for row in around.results[0].messages if row.anchor]
    assert anchor.content == "only here: quokka"


def test_every_hit_can_be_scrolled_and_the_ends_say_so(profile, tell):
    """F12 · NousResearch/hermes-agent#72279."""
    tell("needle one", "needle two", "needle three")

    for hit in profile.session_search("needle", limit=MOST).results:
        answer = profile.session_search(session_id=hit.session_id, around_message_id=hit.match_message_id)
        assert "begins here" in answer.note
        assert "ends here" in answer.note


# ------------------------------------------------------------------ F13


def test_browsing_goes_by_activity_and_big_rows_are_cut(profile):
    """F13 · NousResearch/hermes-agent#82988."""
    scene = Scene(profile.store)
    entry = scene.enter(SessionKey("agent:main:feishu:dm:chat=oc_1"), chat(1))
    begun = scene.ask(entry, "run it")
    scene.append(begun, asking("c1"))
    big = MessageDraft(role=TOOL, content="x" * 1_000_000, timestamp=scene.now, tool_call_id="c1", tool_name="run")
    scene.append(begun, big, saying("done"))
    scene.finish(begun)
    profile.ask("later", chat(2), agent=lambda turn: "yes")
    profile.ask("resumed", chat(1), agent=lambda turn: "yes")

    browsed = profile.session_search()
    anchor = browsed.results[0]
    whole = profile.session_search(session_id=anchor.session_id, role_filter=("user", "assistant", "tool"))
    narrow = profile.session_search(session_id=anchor.session_id)

    assert anchor.lineage_id == entry.lineage_id
    assert all(len(row.content) < 5000 for row in whole.results[0].messages)
    assert any(row.cut for row in whole.results[0].messages)
    assert {row.role for row in narrow.results[0].messages} == {"user", "assistant"}


def test_arguments_of_a_call_are_cut_too(profile):
    """F13 · NousResearch/hermes-agent#82988."""
    scene = Scene(profile.store)
    entry = scene.enter(SessionKey("agent:main:feishu:dm:chat=oc_1"), chat(1))
    begun = scene.ask(entry, "write it")
    call = ToolCall(id="c1", name="write", arguments=json.dumps({"text": "y" * 200_000}))
    scene.append(begun, MessageDraft(role="assistant", content="", timestamp=scene.now, tool_calls=(call,)))

    (found,) = profile.session_search(session_id=entry.session_id).results

    assert all(len(arguments) < 5000 for row in found.messages for _, arguments in row.tool_calls)


# ------------------------------------------------------------------ F14


def test_on_shared_platforms_nobody_finds_what_is_somebody_elses(profile, tell):
    """F14 · NousResearch/hermes-agent#87779."""
    (told,) = tell("my secret is tanzanite", user="ou_alice")
    profile.rename_session(told.entry.lineage_id, "the tanzanite plan")
    bob = profile.principal(chat(9, "ou_bob"))

    assert profile.session_search("tanzanite", principal=bob).results == ()
    assert profile.session_search(principal=bob).results == ()
    for reference in (told.entry.session_id, "the tanzanite plan"):
        with pytest.raises(SessionNotFound):
            profile.session_search(session_id=reference, principal=bob)
    assert len(profile.session_search("tanzanite").results) == 1


# ------------------------------------------------------------------ F15


def test_another_profile_is_another_store(profile, tell, tmp_path):
    """F15 · NousResearch/hermes-agent#106761."""
    (told,) = tell("only in the first")

    with open_app(tmp_path / "home", profile="second", plugins=False, environ={}) as other:
        assert other.session_search("first").results == ()
        with pytest.raises(SessionError):
            other.session_search(session_id=told.entry.session_id)


# ------------------------------------------------------------------ I14


def test_a_redaction_at_the_door_reaches_the_index(tmp_path, site, monkeypatch):
    """I14 · NousResearch/hermes-agent#90369, at the index: what was never stored is never found."""
    pytest.importorskip("hermes_fts5", reason="the index is a plugin")
    site(
        "redact",
        "class Plugin:\n    @hookimpl\n    def hermes_redact_inbound(self, text, source):\n"
        "        return text.replace('tok-12345', '[token]')\n",
    )
    monkeypatch.syspath_prepend(str(site.folder))
    options = {"environ": {}, "overrides": {"plugins.only": ("fts5", "redact")}}
    with open_app(tmp_path / "home", **options) as app:
        app.ask("my token is tok-12345", chat(1), agent=lambda turn: "noted")
        app.search_index.catch_up(budget_s=5.0)

        assert app.session_search("12345", role_filter=("user", "assistant", "tool")).results == ()
        assert len(app.session_search("[token]").results) == 1
