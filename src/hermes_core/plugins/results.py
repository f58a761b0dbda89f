"""What a hook may return, checked where the plugin's name is known: a wrong answer is that plugin's failure.

A hook that is not listed here returns nothing that anybody reads yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check = Callable[[str, object], object]
    Has = Callable[[object], bool]

__all__ = ["check_of", "is_checked"]


def is_checked(hook: str) -> bool:
    """Return whether somebody reads the results of ``hook``."""
    return hook in _CHECKS


def check_of(hook: str) -> Check:
    """Return the check of one hook: ``(plugin, result) -> result``, with sequences as tuples.

    ``None`` is no result, and fine. Every check raises :class:`TypeError` where the result is not what the
    specification says, and whatever a plugin's own object raises when it is looked at.
    """
    check = _CHECKS.get(hook)
    if check is None:
        return lambda _, result: result
    return lambda plugin, result: None if result is None else check(plugin, result)


# --- kinds of results


def _sequence_of(check: Check) -> Check:
    """Return a check of a sequence, each item of which passes ``check``."""

    def checked(plugin: str, result: object) -> object:
        return tuple(check(plugin, item) for item in _items(result))

    return checked


def _items(result: object) -> tuple[object, ...]:
    from collections.abc import Iterable, Mapping

    # A text is a sequence of texts, and hardly ever meant as one.
    if isinstance(result, (str, bytes, Mapping)) or not isinstance(result, Iterable):
        raise TypeError(f"returned {_kind(result)}, not a sequence")
    return tuple(result)


def _shaped(noun: str, shape: Mapping[str, Has]) -> Check:
    """Return a check of one object by its attributes."""

    def checked(_: str, item: object) -> object:
        _look_at(noun, shape, item)
        return item

    return checked


def _look_at(noun: str, shape: Mapping[str, Has], item: object) -> None:
    for attribute, has in shape.items():
        try:
            value = getattr(item, attribute)
        except AttributeError:
            raise TypeError(f"{_kind(item)} is no {noun}: it has no {attribute!r}") from None
        if not has(value):
            raise TypeError(f"{_kind(item)} is no {noun}: its {attribute!r} is {_kind(value)}")


def _text(_: str, result: object) -> object:
    if not isinstance(result, str):
        raise TypeError(f"returned {_kind(result)}, not a text")
    return result


def _claim(_: str, item: object) -> object:
    from hermes_hookspecs.operations import Claim

    if not isinstance(item, Claim):
        raise TypeError(f"{_kind(item)} is no Claim")
    _look_at("Claim", {"key": _is_name, "scope_id": _is_text_or_none}, item)
    return item


def _tool(_: str, item: object) -> object:
    from hermes_hookspecs.tools import is_tool_name

    _look_at("tool", _TOOL, item)
    name = str(getattr(item, "name", ""))  # a text, as was seen
    if not is_tool_name(name):
        raise TypeError(f"{name[:80]!r} is no name of a tool: 1 to 64 ASCII letters, digits, _ and -")
    return item


def _decision(_: str, result: object) -> object:
    from hermes_hookspecs.specs.decisions import Allow, Ignore, Refuse

    if not isinstance(result, Allow | Ignore | Refuse):
        raise TypeError(f"returned {_kind(result)}, not Allow, Refuse or Ignore")
    return result


def _command(plugin: str, item: object) -> object:
    from hermes_core.plugins.naming import named_command
    from hermes_hookspecs.commands import Command

    if not isinstance(item, Command):
        raise TypeError(f"{_kind(item)} is no Command")
    _look_at("Command", _COMMAND, item)
    return named_command(plugin, item)


def _cli_command(plugin: str, item: object) -> object:
    from hermes_core.plugins.naming import named_cli_command
    from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

    if not isinstance(item, CliCommand):
        raise TypeError(f"{_kind(item)} is no CliCommand")
    _look_at("CliCommand", _CLI_COMMAND, item)
    for argument in item.arguments:
        if not isinstance(argument, CliArgument):
            raise TypeError(f"{_kind(argument)} is no CliArgument")
        _look_at("CliArgument", _CLI_ARGUMENT, argument)
    for option in item.options:
        if not isinstance(option, CliOption):
            raise TypeError(f"{_kind(option)} is no CliOption")
        _look_at("CliOption", _CLI_OPTION, option)
    return named_cli_command(plugin, item)


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"


# --- kinds of attributes


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_mapping(value: object) -> bool:
    from collections.abc import Mapping

    return isinstance(value, Mapping)


def _is_tuple(value: object) -> bool:
    return isinstance(value, tuple)


def _is_tuple_of_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def _is_tuple_of_names(value: object) -> bool:
    return isinstance(value, tuple) and value != () and all(map(_is_name, value))


def _is_platform_name(value: object) -> bool:
    from hermes_core.config.rules import is_name

    return isinstance(value, str) and is_name(value)


def _is_there(value: object) -> bool:
    return value is not None


def _is_effect(value: object) -> bool:
    return value in ("read", "idempotent", "write")


def _is_option_kind(value: object) -> bool:
    return value in ("flag", "text", "int", "float", "optional")


def _is_runnable(value: object) -> bool:
    return callable(value) or _is_name(value)


_COMMAND: dict[str, Has] = {
    "name": _is_name,
    "summary": _is_text,
    "run": callable,
    "usage": _is_text,
    "aliases": _is_tuple_of_texts,
    "platforms": _is_tuple_of_texts,
    "roles": _is_tuple_of_texts,
}
_CLI_COMMAND: dict[str, Has] = {
    "path": _is_tuple_of_names,
    "summary": _is_text,
    "run": _is_runnable,
    "arguments": _is_tuple,
    "options": _is_tuple,
    "group_summary": _is_text,
    "details": _is_text,
}
_CLI_ARGUMENT: dict[str, Has] = {"name": _is_name, "help": _is_text}
_CLI_OPTION: dict[str, Has] = {
    "names": _is_tuple_of_names,
    "help": _is_text,
    "kind": _is_option_kind,
    "choices": _is_tuple_of_texts,
    "metavar": _is_text,
}
_AGENT: dict[str, Has] = {"name": _is_name, "model": _is_text_or_none, "run": callable}
_TOOL: dict[str, Has] = {
    "name": _is_name,
    "description": _is_text,
    "effect": _is_effect,
    "parameters": _is_mapping,
    "call": callable,
}
_ATTACHMENT_STORE: dict[str, Has] = dict.fromkeys(("put", "keep", "get", "drop", "sweep"), callable)
_DESCRIBER: dict[str, Has] = {"name": _is_name, "kinds": _is_tuple_of_names, "describe": callable}
_PLATFORM: dict[str, Has] = {
    "name": _is_platform_name,
    "abilities": _is_there,
    "accounts": callable,
    "adapter": callable,
}
_ACTIVITY: dict[str, Has] = {"kind": _is_text, "label": _is_text, "started_at": _is_number}
_KEY_BUILDER: dict[str, Has] = {
    "version": _is_number,
    "build": callable,
    "parts": callable,
    "parse": callable,
    "alternatives": callable,
}

_CHECKS: dict[str, Check] = {
    "hermes_agents": _sequence_of(_shaped("agent", _AGENT)),
    "hermes_attachment_describers": _sequence_of(_shaped("attachment describer", _DESCRIBER)),
    "hermes_attachment_store": _shaped("attachment store", _ATTACHMENT_STORE),
    "hermes_background_activity": _sequence_of(_shaped("activity", _ACTIVITY)),
    "hermes_cli_commands": _sequence_of(_cli_command),
    "hermes_commands": _sequence_of(_command),
    "hermes_compression_policies": _sequence_of(_shaped("compression policy", {"name": _is_name, "cut": callable})),
    "hermes_context_providers": _sequence_of(_shaped("context provider", {"name": _is_name, "pieces": callable})),
    "hermes_decide_access": _decision,
    "hermes_front_end": _shaped("front end", {"name": _is_name, "main": callable}),
    "hermes_key_builder": _shaped("key builder", _KEY_BUILDER),
    "hermes_legacy_claims": _sequence_of(_claim),
    "hermes_platforms": _sequence_of(_shaped("platform", _PLATFORM)),
    "hermes_redact_inbound": _text,
    "hermes_reset_policies": _sequence_of(_shaped("reset policy", {"name": _is_name, "decide": callable})),
    "hermes_store_backends": _sequence_of(_shaped("store backend", {"name": _is_name, "open": callable})),
    "hermes_summarisers": _sequence_of(_shaped("summariser", {"name": _is_name, "summarise": callable})),
    "hermes_system_prompt_parts": _sequence_of(_text),
    "hermes_titlers": _sequence_of(_shaped("titler", {"name": _is_name, "title": callable})),
    "hermes_tools": _sequence_of(_tool),
}
