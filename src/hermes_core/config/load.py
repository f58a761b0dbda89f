"""From files, environment and options to :class:`~hermes_core.config.sections.Settings`.

Option > environment > profile's file > home's file > default, key by key. Every value is checked where it stands, so a
mistake in a file is reported even when an option would have covered it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hermes_core.config.access import ChatTables
from hermes_core.config.faults import Layer, unknown_key, unknown_section
from hermes_core.config.places import find_places
from hermes_core.config.resets import ResetTables
from hermes_core.config.rules import Rule, is_name, rules_of
from hermes_core.config.sections import (
    PLATFORMS,
    PLUGINS,
    SECTIONS,
    AgentSettings,
    AttachmentSettings,
    CommandSettings,
    CompressionSettings,
    DisplaySettings,
    GatewaySettings,
    InboxSettings,
    OutboxSettings,
    PlatformSettings,
    PluginSettings,
    RoutingSettings,
    SessionResetSettings,
    Settings,
    StorageSettings,
    TurnSettings,
)
from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import attrs

    SectionT = TypeVar("SectionT", bound=attrs.AttrsInstance)

__all__ = ["load_settings"]

_PREFIX = "HERMES_"
_MAX_FILE_BYTES = 4 * 1024 * 1024


class _Found(NamedTuple):
    """One value and how its origin is named to people."""

    value: object
    origin: str


def load_settings(
    home: Path | None,
    profile: str | None,
    overrides: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    db: Path | None = None,
) -> Settings:
    """Return the effective settings; reads at most two files, writes nothing.

    :param home: the option ``--home``; ``None`` asks ``HERMES_SESSIONS_HOME``, then takes ``~/.hermes-sessions``.
    :param profile: the option ``--profile``; ``None`` is ``default``.
    :param overrides: dotted key → value of options; ``None`` values are options that were not given.
        ``plugins.only = ()`` is ``--no-plugins``.
    :param environ: environment variables, usually ``os.environ``.
    :param db: the option ``--db``: a database file with its own folder ``<db>.d``.
    :raises ConfigError: an unknown key or section, a value of the wrong type or out of range, an unreadable file.
    """
    places = find_places(home, profile, db, environ)
    found: dict[str, dict[str, _Found]] = {}
    resets, chats = ResetTables(), ChatTables()
    for file in places.files:
        _take_file(found, resets, chats, file)
    notices = _take_environment(found, environ)
    _take_overrides(found, overrides)
    sections = {name: found.pop(name, {}) for name in SECTIONS}
    tables = {name.split(".", 1)[1]: found[name] for name in sorted(found) if name.startswith(f"{PLUGINS}.")}
    platforms = {name.split(".", 1)[1]: found[name] for name in sorted(found) if name.startswith(f"{PLATFORMS}.")}
    settings = Settings(
        home=places.home,
        profile=places.profile,
        folder=places.folder,
        db_path=places.db_path,
        storage=_built(StorageSettings, sections["storage"]),
        routing=_built(RoutingSettings, sections["routing"]),
        agent=_built(AgentSettings, sections["agent"]),
        turns=_built(TurnSettings, sections["turns"]),
        inbox=_built(InboxSettings, sections["inbox"]),
        outbox=_built(OutboxSettings, sections["outbox"]),
        compression=_built(CompressionSettings, sections["compression"]),
        attachments=_built(AttachmentSettings, sections["attachments"]),
        gateway=_built(GatewaySettings, sections["gateway"]),
        session_reset=_built(SessionResetSettings, sections["session_reset"]),
        commands=_built(CommandSettings, sections["commands"]),
        display=_built(DisplaySettings, sections["display"]),
        plugins=_built(PluginSettings, sections[PLUGINS]),
        platforms=MappingProxyType({name: _built(PlatformSettings, keys) for name, keys in platforms.items()}),
        plugin_tables=MappingProxyType(
            {name: MappingProxyType({key: item.value for key, item in keys.items()}) for name, keys in tables.items()}
        ),
        origins=_origins(sections, platforms, tables),
        notices=tuple(notices),
        reset_overrides=resets.built(),
        chat_overrides=chats.built(),
    )
    _check_turns(settings)
    return settings


def _built(kind: type[SectionT], found: Mapping[str, _Found]) -> SectionT:
    return kind(**{key: item.value for key, item in found.items()})


def _origins(
    sections: Mapping[str, Mapping[str, _Found]],
    platforms: Mapping[str, Mapping[str, _Found]],
    tables: Mapping[str, Mapping[str, _Found]],
) -> Mapping[str, str]:
    origins = {f"{section}.{key}": "default" for section, kind in SECTIONS.items() for key in rules_of(kind)}
    named = [*sections.items()]
    named += [(f"{PLATFORMS}.{name}", keys) for name, keys in platforms.items()]
    named += [(f"{PLUGINS}.{name}", keys) for name, keys in tables.items()]
    for section, keys in named:
        origins.update({f"{section}.{key}": item.origin for key, item in keys.items()})
    return MappingProxyType(origins)


def _check_turns(settings: Settings) -> None:
    """Refuse durations of ``[turns]`` that would let a lease run out under its holder or a waiter give up early."""
    turns = settings.turns
    if turns.lease_wait_s < turns.lease_ttl_s:
        sentence = (
            f"lease_wait_s = {turns.lease_wait_s:g} is below lease_ttl_s = {turns.lease_ttl_s:g}; "
            "whoever waits must be able to outlive a dead holder's lease"
        )
        raise _pair_fault(settings, "lease_wait_s", "lease_ttl_s", sentence)
    if turns.lease_renew_s >= turns.lease_ttl_s:
        sentence = (
            f"lease_renew_s = {turns.lease_renew_s:g} is not below lease_ttl_s = {turns.lease_ttl_s:g}; "
            "a lease must be renewed before it runs out"
        )
        raise _pair_fault(settings, "lease_renew_s", "lease_ttl_s", sentence)


def _pair_fault(settings: Settings, first: str, second: str, sentence: str) -> ConfigError:
    """Return the error for two keys that do not fit each other, blamed on the first one that somebody set."""
    key = first if settings.origins[f"turns.{first}"] != "default" else second
    return Layer(settings.origins[f"turns.{key}"]).fault("turns", key, sentence)


# --- files


def _take_file(found: dict[str, dict[str, _Found]], resets: ResetTables, chats: ChatTables, path: Path) -> None:
    text = _read(path)
    if text is None:
        return
    document = _parsed(path, text)
    layer = Layer(str(path), text)
    for section, table in document.items():
        if section == PLATFORMS:
            _take_platforms(found, resets, chats, layer, table)
        elif section not in SECTIONS:
            raise unknown_section(layer, section, table)
        elif not isinstance(table, dict):
            raise layer.fault("", section, f"{section} is a section; write it as a table, [{section}]")
        elif section == PLUGINS:
            _take_plugins(found, layer, table)
        elif section == "session_reset":
            _take_section(found, layer, section, rules_of(SECTIONS[section]), resets.take_general(layer, table))
        else:
            _take_section(found, layer, section, rules_of(SECTIONS[section]), table)


def _read(path: Path) -> str | None:
    """Return the text of ``path``, ``None`` when there is no such file."""
    try:
        # A pipe or a device under this name would block a plain read for ever.
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: is no regular file", origin=str(path))
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror or exc}", origin=str(path)) from exc
    if len(raw) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path}: is larger than {_MAX_FILE_BYTES // 1024**2} MiB", origin=str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        hint = " (it looks like UTF-16)" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise ConfigError(f"{path}:{line}: is not UTF-8{hint}; save it as UTF-8", origin=str(path)) from exc


def _parsed(path: Path, text: str) -> dict[str, object]:
    if not text.strip():
        return {}
    import tomli  # only a home with a configuration pays for the parser

    try:
        # The parser takes LF and CRLF only, as TOML says.
        return tomli.loads(text)
    except (ValueError, RecursionError) as exc:
        reason = " ".join(str(exc).split())
        raise ConfigError(f"{path}: is not valid TOML: {reason}", origin=str(path)) from exc


def _take_section(
    found: dict[str, dict[str, _Found]],
    layer: Layer,
    section: str,
    rules: Mapping[str, Rule],
    table: Mapping[str, object],
) -> None:
    into = found.setdefault(section, {})
    for key, value in table.items():
        rule = rules.get(key)
        if rule is None or not rule.in_file:
            raise unknown_key(layer, section, key, (name for name, rule in rules.items() if rule.in_file))
        into[key] = _Found(layer.checked(section, key, rule, value), layer.origin)


def _take_platforms(
    found: dict[str, dict[str, _Found]], resets: ResetTables, chats: ChatTables, layer: Layer, table: object
) -> None:
    if not isinstance(table, dict):
        raise layer.fault("", PLATFORMS, f"{PLATFORMS} is a section; write [{PLATFORMS}.<name>]")
    rules = rules_of(PlatformSettings)
    for name, keys in table.items():
        if not isinstance(keys, dict):
            if name in rules:
                raise layer.fault(PLATFORMS, name, f"{name} belongs in [routing] or in [{PLATFORMS}.<name>]")
            raise layer.fault(PLATFORMS, name, f"{name} is no table; write [{PLATFORMS}.{name}]")
        if not is_name(name):
            hint = f"; did you mean [{PLATFORMS}.{name.lower()}]?" if is_name(name.lower()) else ""
            raise layer.fault(f"{PLATFORMS}.{name}", "", f"platform names are lower case{hint}")
        own = resets.take_platform(layer, name, chats.take(layer, name, keys))
        _take_section(found, layer, f"{PLATFORMS}.{name}", rules, own)


def _take_plugins(found: dict[str, dict[str, _Found]], layer: Layer, table: Mapping[str, object]) -> None:
    rules = rules_of(PluginSettings)
    own = {key: value for key, value in table.items() if key in rules or not isinstance(value, dict)}
    _take_section(found, layer, PLUGINS, rules, own)
    for name, keys in table.items():
        if name in own or not isinstance(keys, dict):
            continue
        into = found.setdefault(f"{PLUGINS}.{name}", {})
        into.update({key: _Found(_frozen(value), layer.origin) for key, value in keys.items()})


def _frozen(value: object) -> object:
    """Return ``value`` with every table as a read-only mapping and every list as a tuple, all the way down."""
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return value


# --- environment


def _take_environment(found: dict[str, dict[str, _Found]], environ: Mapping[str, str]) -> list[str]:
    """Take the variables that set something; return a notice for each that seems to be misspelt."""
    ours = [name for name in environ if name.startswith(_PREFIX)]
    if not ours:
        return []
    variables = _variables()
    notices = []
    # Sorted by rank: an alias counts only where the regular name is not set.
    for name in sorted(ours, key=lambda name: variables[name][3] if name in variables else 0, reverse=True):
        known = variables.get(name) or _platform_variable(name)
        if known is None:
            notices += _misspelt(name, variables)
            continue
        section, key, rule, _ = known
        text = environ[name]
        if not text.strip() and rule.kind in ("switch", "whole", "number"):
            continue  # `export NAME=` is how people unset a variable
        layer = Layer(f"environment {name}")
        found.setdefault(section, {})[key] = _Found(layer.parsed(section, key, rule, text), layer.origin)
    return sorted(notices)


def _variables() -> dict[str, tuple[str, str, Rule, int]]:
    """Return variable → section, key, rule and rank; the regular name of a setting has rank 0, an alias 1."""
    variables = {}
    for section, kind in SECTIONS.items():
        for key, rule in rules_of(kind).items():
            if rule.in_file:
                variables[f"{_PREFIX}{section}_{key}".upper()] = (section, key, rule, 0)
            for alias in rule.env:
                variables[alias] = (section, key, rule, 1)
    return variables


def _platform_variable(name: str) -> tuple[str, str, Rule, int] | None:
    start = f"{_PREFIX}{PLATFORMS.upper()}_"
    for key, rule in rules_of(PlatformSettings).items() if name.startswith(start) else ():
        end = f"_{key.upper()}"
        platform = name[len(start) : -len(end)].lower()
        if name.endswith(end) and platform:
            return f"{PLATFORMS}.{platform}", key, rule, 0
    return None


def _misspelt(name: str, variables: Mapping[str, object]) -> list[str]:
    """Return a notice when ``name`` looks like one of ours; other programs own ``HERMES_`` variables, too."""
    sections = (f"{_PREFIX}{section.upper()}_" for section in (*SECTIONS, PLATFORMS))
    if not name.startswith(tuple(sections)):
        return []
    from difflib import get_close_matches

    near = get_close_matches(name, list(variables), n=1, cutoff=0.85)
    return [f"environment {name} sets nothing; did you mean {near[0]}?"] if near else []


# --- options


def _take_overrides(found: dict[str, dict[str, _Found]], overrides: Mapping[str, object]) -> None:
    for dotted, value in overrides.items():
        if value is None:
            continue
        section, _, key = dotted.rpartition(".")
        layer = Layer(f"option --{dotted}")
        if section.startswith(f"{PLUGINS}."):
            found.setdefault(section, {})[key] = _Found(_frozen(value), layer.origin)
            continue
        kind = PlatformSettings if section.startswith(f"{PLATFORMS}.") else SECTIONS.get(section)
        if kind is None:
            raise unknown_section(layer, section, {}) if section else unknown_key(layer, "", key, SECTIONS)
        rules = rules_of(kind)
        rule = rules.get(key)
        if rule is None:
            raise unknown_key(layer, section, key, rules)
        layer = Layer(f"option {rule.option}") if rule.option else layer
        found.setdefault(section, {})[key] = _Found(layer.checked(section, key, rule, value), layer.origin)
