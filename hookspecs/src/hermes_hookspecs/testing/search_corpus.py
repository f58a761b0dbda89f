"""What a search index is measured on: texts in many scripts, queries, and for the most telling ones who must be found.

Every text is the only user row of a conversation of its own, so a hit set is a set of the names below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import matches

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KNOWN", "LONG_WORD", "MISTAKES", "QUERIES", "TEXTS", "expected"]

LONG_WORD = "".join(f"{number:03x}" for number in range(90))
"""A word of 270 characters, as tools print them."""

TEXTS: Mapping[str, str] = {
    "en-deploy": "The nightly build failed while deploying nginx to the staging cluster.",
    "en-answer": "We decided that the database should be migrated before the release, not after.",
    "en-hyphen": "Run pre-commit and the build-log job first; then alpha, then beta.",
    "en-quote": "what's left? i.e. the docs in docs/setup.md, 75% done, see #42 and x,y",
    "en-shell": "ls -la ~/.bashrc && tool --dry-run me@host.example",
    "en-note": "NOTE: later we rename get_or_create_session (it is used in 3 places).",
    "en-accent": "Das Café in der Straße serviert Crème brûlée; naïve façade in İstanbul.",
    "en-upper": "ÄRGER MIT DER STRASSE",
    "ru": "Сервер базы данных перезапущен, ёлка стоит",
    "el": "Η βάση δεδομένων είναι έτοιμη",
    "hi": "डेटाबेस का बैकअप पूरा हुआ",
    "ar": "قاعِدة البيانات جاهزة",
    "zh-deploy": "昨天把nginx服务重启了，然后完成数据库迁移。",
    "zh-alone": "部署",
    "zh-inside": "今天的部署计划推迟到周五",
    "zh-spaced": "用 docker 部署 到生产环境",
    "zh-glued": "用docker部署到测试环境，编号qz已核对",
    "zh-percent": "进度100%完成",
    "zh-percent-not": "进度100了完成",
    "zh-underscore": "变量a_b值",
    "zh-underscore-not": "变量axb值",
    "zh-traditional": "資料庫遷移已經完成",
    "zh-place": "广西的项目在桂林，新疆的项目在大别山",
    "zh-plane": "生僻字𠮷野家和𪚥都要找到",
    "zh-variant": "葛\U000e0100飾区と葛城市",
    "zh-full-width": "版本ＡＢＣ１２３，代号（测试）",
    "ja": "データベースの移行が完了しました。明日サーバーを再起動します。",
    "ja-half": "自動ﾃｽﾄ結果：ﾊﾟｽﾜｰﾄﾞ変更",
    "ja-apart": "か\u3099ぎを探す",
    "ko": "데이터베이스 마이그레이션을 완료했습니다",
    "ko-jamo": "ㅋㅋㅋ 좋아요 ㅎㅏㄴ글",
    "zh-bopomofo": "注音ㄅㄆㄇㄈ輸入",
    "th": "การสำรองฐานข้อมูลเสร็จแล้ว",
    "lo": "ຖານຂໍ້ມູນພ້ອມແລ້ວ",
    "km": "មូលដ្ឋានទិន្នន័យរួចរាល់",
    "my": "ဒေတာဘေ့စ် အဆင်သင့်ဖြစ်ပြီ",
    "code": 'def parse(text: str) -> Node:\n    return {"a": [1, 2]}["a"]  # O(n*m)',
    "sql": "SELECT * FROM messages WHERE id = 'x'; DROP TABLE messages; --",
    "regex": r"^(?:foo|bar)+\s*$ and $PATH",
    "emoji": "deployed 🎉🚀 today",
    "lines": "first line\n\tsecond   line\r\nthird",
    "invisible": "data\u00adbase and zero\u200bwidth",
    "control": "bell\x07rings \x02marked\x03 and \x1b[31mred\x1b[0m",
    "long": f"hash {LONG_WORD} end",
    "punctuation": '... -> "(" * ???',
    "short": "a b c is it ok",
}
"""Texts by name."""

KNOWN: Mapping[str, frozenset[str]] = {
    query: frozenset(names.split())
    for query, names in {
        "部署": "zh-alone zh-inside zh-spaced zh-glued",
        "部署*": "zh-alone zh-inside zh-spaced zh-glued",
        "署": "zh-alone zh-inside zh-spaced zh-glued",
        "docker部署": "zh-spaced zh-glued",
        '"docker 部署"': "zh-spaced zh-glued",
        "nginx": "en-deploy zh-deploy",
        "nginx 重启": "zh-deploy",
        "qz": "zh-glued",
        "数据库迁移": "zh-deploy",
        "广西 OR 桂林": "zh-place",
        "大别山 OR 部署": "zh-place zh-alone zh-inside zh-spaced zh-glued",
        "100%完成": "zh-percent",
        "a_b值": "zh-underscore",
        "𠮷野": "zh-plane",
        "𪚥": "zh-plane",
        "葛飾": "zh-variant",
        "葛": "zh-variant",
        "ABC123": "zh-full-width",
        "ａｂｃ": "zh-full-width",
        "テスト": "ja-half",
        "ﾃｽﾄ": "ja-half",
        "パスワード": "ja-half",
        "がぎ": "ja-apart",
        "サーバー": "ja",
        "ー": "ja ja-half",
        "마이그레이션": "ko",
        "이그": "ko",
        "션을": "ko",
        "ㅋㅋ": "ko-jamo",
        "ㅏㄴ": "ko-jamo",
        "ㄆㄇ": "zh-bopomofo",
        "ฐานข้อมูล": "th",
        "ຂໍ້ມູນ": "lo",
        "ទិន្នន័យ": "km",
        "ဘေ့စ်": "my",
        "cafe": "en-accent",
        "creme brulee": "en-accent",
        "strasse": "en-accent en-upper",
        "istanbul": "en-accent",
        "ärger": "en-upper",
        "елка": "ru",
        "βαση": "el",
        "बैकअप": "hi",
        "قاعدة": "ar",
        "grat": "en-answer",
        "commit": "en-hyphen",
        '"commit"': "en-hyphen",
        '"omm"': "",
        "omm": "en-hyphen",
        "b": "short zh-underscore",
        "pre-commit": "en-hyphen",
        "alpha OR build-log OR beta": "en-hyphen",
        '"nightly build"': "en-deploy",
        "build -nightly": "en-hyphen",
        "build NOT nightly": "en-hyphen",
        "(nginx OR alpha) build": "en-deploy en-hyphen",
        "deploy*": "en-deploy emoji",
        "eploy*": "",
        "what's": "en-quote",
        "docs/setup.md": "en-quote",
        "75%": "en-quote",
        "#42": "en-quote",
        "#4": "",
        "x,y": "en-quote",
        "left?": "en-quote",
        "i.e.": "en-quote",
        "NOTE: later": "en-note",
        "get_or_create": "en-note",
        "ls -la": "en-shell",
        "--dry-run": "en-shell",
        ".bashrc": "en-shell",
        "me@host.example": "en-shell",
        "-> Node": "code",
        "O(n*m)": "code",
        "*": "code sql regex punctuation",
        '"': "code punctuation",
        "(": "en-note code regex punctuation zh-full-width",
        "$PATH": "regex",
        "'x';": "sql",
        "🎉": "emoji",
        '"line second line third"': "lines",
        "database": "en-answer invisible",
        "zerowidth": "invisible",
        "marked": "control",
        "is": "short en-note",
        LONG_WORD: "long",
        LONG_WORD[37:187]: "long",
        LONG_WORD[100:104]: "long",
    }.items()
}
"""Who must be found, written by hand."""

QUERIES = (
    "the",
    "not",
    "release OR 推迟",
    "数据库 OR 資料庫",
    "的项目 -桂林",
    "的项目 -东京",
    "项目 (广西 OR 东京)",
    '"的项目在"',
    "完成 NOT 数据库",
    "完了 OR 완료",
    "データ",
    "了",
    "，",
    "。",
    "nothingofthekind",
    "数据库不存在的词",
    "a",
    "1",
    "-- DROP",
    "[1, 2]",
    '{"a":',
    "~/.",
    "&&",
    "x",
    "sess*",
    '"used in 3"*',
    "database migrated",
    "МИГР OR СЕРВЕР",
    "FAÇADE",
)
"""Queries whose hits are worked out by reading everything."""

MISTAKES = (
    "",
    "   ",
    "\x00\x01",
    'open "quote',
    "(open",
    "(a) b)",
    "AND",
    "OR OR",
    "NOT",
    "a NOT",
    "NOT a",
    "-a",
    "a OR -b",
    '""" x',
    "x " * 100,
    "x" * 10_000,
    "(" * 40 + "a" + ")" * 40,
)
"""Queries that cannot be meant."""


def expected(query: str) -> frozenset[str]:
    """Return the names of the texts that a query matches, by reading all of them."""
    parsed = parse(query)
    return frozenset(name for name, text in TEXTS.items() if matches(parsed, text))
