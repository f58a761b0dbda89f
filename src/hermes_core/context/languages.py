"""What the extractive summary knows of languages: headings, and words that give a decision or an open end away."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SECTIONS", "Words", "language_of", "section_of", "words_of"]

SECTIONS: Final = ("earlier", "goals", "focus", "decisions", "files", "commands", "results", "open")
"""Parts of a summary in their order."""

_HEADINGS: Final = {
    "en": ("Earlier", "Goals", "About", "Decisions", "Files", "Commands", "Done", "Open"),
    "zh": ("更早", "目标", "关于", "决定", "文件", "命令", "已完成", "待办"),
    "ja": ("それ以前", "目的", "焦点", "決定事項", "ファイル", "コマンド", "完了", "未解決"),
    "ko": ("이전", "목표", "초점", "결정", "파일", "명령", "완료", "남은 일"),
    "ru": ("Ранее", "Цели", "О теме", "Решения", "Файлы", "Команды", "Сделано", "Открыто"),
    "de": ("Davor", "Ziele", "Zu", "Entscheidungen", "Dateien", "Befehle", "Erledigt", "Offen"),
    "fr": ("Auparavant", "Objectifs", "À propos", "Décisions", "Fichiers", "Commandes", "Fait", "En suspens"),
    "es": ("Antes", "Objetivos", "Sobre", "Decisiones", "Archivos", "Órdenes", "Hecho", "Pendiente"),
}
# Each line: asks, decides, reports, puts off. English stands beside every language: people mix them.
_CUES: Final = {
    "en": (
        r"\b(please|i want|i need|we need|can you|could you|help me|make sure|goal|must|should)\b",
        (
            r"\b(decid\w+|agreed?|let'?s (use|go|do|keep|take)|we('ll| will) (use|go|do|keep|take)|instead of"
            r"|from now on|never|always|prefer\w*|settled|chose|chosen|don'?t use|remember|must not)\b"
        ),
        (
            r"\b(done|fixed|created|added|removed|changed|updated|passed|passes|deployed|merged|installed|finished"
            r"|implemented|found|the cause)\b"
        ),
        (
            r"\b(todo|to do|fixme|still (to|need|open|missing)|remain\w*|next step\w*|later|pending|not yet|blocked"
            r"|waiting for|follow[- ]?up)\b"
        ),
    ),
    "zh": (
        r"请|帮我|我要|我想|需要|目标|希望|能不能|必须",
        r"决定|确定|采用|改用|选择|就用|约定|不要用|以后都|统一|同意|定为|记住",
        r"完成|已经|修复|创建|添加|删除|更新|通过了|部署|合并|原因是|搞定",
        r"待办|还没|尚未|之后再|稍后|下一步|剩下|未完成|等待|回头",
    ),
    "ja": (
        r"ください|お願い|したい|必要|目的|欲しい|してほしい",
        r"決め|決定|採用|代わりに|ことにし|使わない|今後|方針|統一|合意",
        r"完了|修正し|作成し|追加し|削除し|更新し|終わり|原因は|できました",
        r"まだ|あとで|後で|次の|残り|未解決|保留|todo",
    ),
    "ko": (
        r"해\s?주세요|부탁|원해|필요|목표|싶",
        r"결정|정했|하기로|대신|사용하지|앞으로|통일|합의",
        r"완료|수정했|만들었|추가했|삭제했|업데이트|원인은|끝났",
        r"아직|나중에|다음|남은|보류|미해결",
    ),
    "ru": (
        r"пожалуйста|мне нужно|нужно|хочу|помоги|цель|сделай|надо",
        r"решил|решен|договорил|вместо|будем использ|давай|всегда|никогда|отныне|выбра",
        r"готово|исправл|создал|добав|удал|обновл|сделано|причина",
        r"ещё не|еще не|потом|позже|осталось|следующ|в ожидании|нужно будет",
    ),
    "de": (
        r"\b(bitte|ich will|ich möchte|wir brauchen|ich brauche|kannst du|ziel|soll\w*|muss)\b",
        (
            r"\b(entschied\w*|entscheid\w*|beschlossen|nehmen wir|wir nehmen|statt|stattdessen|ab jetzt|nie|immer"
            r"|einigen|vereinbart|verwenden wir|merk dir)\b"
        ),
        r"\b(fertig|erledigt|behoben|angelegt|hinzugefügt|entfernt|geändert|aktualisiert|ursache)\b",
        r"\b(noch (nicht|offen)|später|nächste\w*|offen|fehlt|ausstehend|bleibt|warten auf)\b",
    ),
    "fr": (
        r"(s'il (te|vous) plaît|je veux|j'ai besoin|il faut|peux-tu|pouvez-vous|objectif|aide)",
        r"(décid|convenu|utilisons|plutôt|au lieu|désormais|jamais|toujours|choisi|d'accord)",
        r"(terminé|corrigé|créé|ajouté|supprimé|modifié|mis à jour|la cause)",
        r"(pas encore|plus tard|prochaine|reste|en attente|à faire)",
    ),
    "es": (
        r"(por favor|quiero|necesito|necesitamos|puedes|podrías|objetivo|ayúdame|hay que)",
        r"(decid|acord|usemos|usaremos|en lugar de|a partir de ahora|nunca|siempre|elegi|mejor us)",
        r"(hecho|corregid|cread|añadid|eliminad|cambiad|actualizad|la causa|listo)",
        r"(todavía no|aún no|más tarde|siguiente|queda|pendiente|por hacer)",
    ),
}
_COMMON: Final = {
    "en": frozenset({"the", "and", "is", "to", "of", "in", "it", "you", "that", "for", "this", "with", "please"}),
    "de": frozenset(
        {"der", "die", "das", "und", "ist", "nicht", "ich", "wir", "ein", "eine", "zu", "mit", "bitte", "auf"}
    ),
    "fr": frozenset({"le", "la", "les", "et", "est", "une", "des", "dans", "pour", "nous", "vous", "je", "pas", "que"}),
    "es": frozenset({"el", "los", "las", "y", "es", "una", "para", "con", "por", "que", "del", "no", "se", "está"}),
}


@attrs.frozen(kw_only=True, eq=False)
class Words:
    """One language: headings by section, and what marks a wish, a decision, a result and what was put off."""

    headings: Mapping[str, str]
    asks: re.Pattern[str]
    decides: re.Pattern[str]
    reports: re.Pattern[str]
    puts_off: re.Pattern[str]


@cache
def words_of(language: str) -> Words:
    """Return the words of a language, beside the English ones."""
    cues = (
        _CUES["en"]
        if language == "en"
        else [f"{one}|{two}" for one, two in zip(_CUES[language], _CUES["en"], strict=True)]
    )
    asks, decides, reports, puts_off = (re.compile(cue) for cue in cues)
    headings = dict(zip(SECTIONS, _HEADINGS[language], strict=True))
    return Words(headings=headings, asks=asks, decides=decides, reports=reports, puts_off=puts_off)


def section_of(heading: str) -> str:
    """Return the section that a heading of any language stands over, ``""`` where none does."""
    name = heading.partition(":")[0].strip()
    for headings in _HEADINGS.values():
        if name in headings:
            return SECTIONS[headings.index(name)]
    return ""


def language_of(text: str) -> str:
    """Return the language that most of a text is in; English where nothing says otherwise."""
    kana = len(re.findall(r"[\u3040-\u30ff]", text))
    han = len(re.findall(r"[\u3400-\u9fff]", text))
    hangul = len(re.findall(r"[\uac00-\ud7a3]", text))
    cyrillic = len(re.findall(r"[\u0400-\u04ff]", text))
    latin = len(re.findall(r"[A-Za-z\u00c0-\u024f]", text))
    # A character of Chinese says as much as a few letters, and technical words are Latin everywhere.
    weights = {"ja": 4 * (kana + han) if kana * 5 > han else 0, "zh": 4 * han, "ko": 4 * hangul, "ru": 2 * cyrillic}
    best = max(weights, key=lambda name: (weights[name], name == "ja"))
    if weights[best] > latin:
        return best
    said = re.findall(r"[a-z\u00e0-\u024f]+", text.lower())
    counts = {name: sum(word in common for word in said) for name, common in _COMMON.items()}
    return max(counts, key=lambda name: (counts[name], name == "en"))
