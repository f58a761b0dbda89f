"""Where a program keeps its things: home, profile, folder, database. Nothing here writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.sections import Settings

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_PROFILE",
    "HOME_VARIABLE",
    "Places",
    "account_places",
    "check_places",
    "file_name",
    "find_places",
]

CONFIG_FILE: Final = "config.toml"
DEFAULT_PROFILE: Final = "default"
HOME_VARIABLE: Final = "HERMES_SESSIONS_HOME"
_DATABASE: Final = "state.db"
_PROFILE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_PROFILE_LENGTH: Final = 64
_LONGEST_NAME: Final = 60


class Places(NamedTuple):
    """The folders of one program run, all absolute.

    ``files``: the configuration files that count, the more general first; they need not exist.
    """

    home: Path
    profile: str
    folder: Path
    db_path: Path
    files: tuple[Path, ...]


def find_places(home: Path | None, profile: str | None, db: Path | None, environ: Mapping[str, str]) -> Places:
    """Return the places of a run.

    :param home: the option ``--home``; ``None``: ``HERMES_SESSIONS_HOME``, else ``~/.hermes-sessions``.
    :param profile: the option ``--profile``; ``None``: ``default``, which is the home itself.
    :param db: the option ``--db``: a database file that brings ``<db>.d`` as its folder.
    :raises ConfigError: a profile name that is no slug, or no home folder to be found.
    """
    root = _home(home, environ)
    name = DEFAULT_PROFILE if profile is None else profile
    _check_profile(name)
    files = [root / CONFIG_FILE]
    folder = root
    if name != DEFAULT_PROFILE:
        folder = root / "profiles" / name
        files.append(folder / CONFIG_FILE)
    db_path = folder / _DATABASE
    if db is not None:
        db_path = _absolute(db, "option --db")
        folder = db_path.with_name(f"{db_path.name}.d")
    return Places(root, name, folder, db_path, tuple(files))


def _home(home: Path | None, environ: Mapping[str, str]) -> Path:
    if home is not None:
        return _absolute(home, "option --home")
    named = environ.get(HOME_VARIABLE)
    if named:
        return _absolute(Path(named), f"environment {HOME_VARIABLE}")
    try:
        user = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError as exc:
        origin = f"environment {HOME_VARIABLE}"
        raise ConfigError(f"the user has no home folder; set {HOME_VARIABLE}", origin=origin) from exc
    return user.absolute() / ".hermes-sessions"


def _absolute(path: Path, origin: str) -> Path:
    text = str(path)
    if "\0" in text:
        raise ConfigError(f"{origin}: {text!r} is no usable path", origin=origin)
    try:
        # Absolute, but not resolved: a home behind a symbolic link stays where its owner put it.
        return path.expanduser().absolute()
    except RuntimeError as exc:
        raise ConfigError(f"{origin}: {text!r} names an unknown user", origin=origin) from exc


def _check_profile(name: str) -> None:
    sound = 0 < len(name) <= _PROFILE_LENGTH and _PROFILE_CHARACTERS.issuperset(name) and name[0] not in "-_"
    if not sound:
        msg = (
            f"{name[:80]!r} is no profile name; use up to {_PROFILE_LENGTH} lower-case letters, digits, '-' and '_', "
            "a letter or digit first"
        )
        raise ConfigError(msg, origin="option --profile")


def check_places(settings: Settings, *, home: bool, profile: bool, db: bool) -> None:
    """Refuse what was named and is not there: a mistyped name must not look like an empty store."""
    named = (
        ("--db", db, settings.db_path, f"there is no database {settings.db_path}"),
        ("--home", home, settings.home, f"there is no folder {settings.home}"),
        (
            "--profile",
            profile and not db,
            settings.folder,
            f"there is no profile {settings.profile!r} in {settings.home}",
        ),
    )
    for option, was_named, place, sentence in named:
        if was_named and not place.exists():
            raise ConfigError(f"{sentence}; talking with it makes it: `hermes {option} …`", origin=f"option {option}")


def account_places(folder: Path, platform: str, account_id: str) -> tuple[Path, ...]:
    """Return the folder of an account's adapter, last, and those above it inside the profile's, which may be made."""
    above = folder / "platforms"
    of_platform = above / file_name(platform)
    return above, of_platform, of_platform / file_name(account_id)


def file_name(alias: str) -> str:
    """Return a name for files about an account: its alias where that is harmless, a hash of it otherwise."""
    from hermes_core.config.rules import is_name

    if is_name(alias) and len(alias) <= _LONGEST_NAME:
        return alias
    from hashlib import sha256

    return f"x{sha256(alias.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
