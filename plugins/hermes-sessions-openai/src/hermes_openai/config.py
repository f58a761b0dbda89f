"""What can be set in ``[plugins.openai]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from hermes_hookspecs.turns import Usage

__all__ = ["OPENAI", "OpenAIConfig", "Price"]

OPENAI = "https://api.openai.com/v1"
"""Address of the endpoint that is asked when none is named."""


@attrs.frozen(kw_only=True)
class Price:
    """What a model costs, in US dollars for a million tokens.

    Attributes:
        cached: of the prompt, what was read from the cache; as ``input`` where not given.
        cache_write: of the prompt, what was written to the cache; as ``input`` where not given.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return the cost in US dollars; ``None`` where the endpoint did not say how much it did."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        read = min(usage.cache_read_tokens or 0, usage.input_tokens)
        written = min(usage.cache_write_tokens or 0, usage.input_tokens - read)
        cached = self.input if self.cached is None else self.cached
        kept = self.input if self.cache_write is None else self.cache_write
        plain = usage.input_tokens - read - written
        sums = plain * self.input + read * cached + written * kept + usage.output_tokens * self.output
        return sums / 1_000_000


@attrs.frozen(kw_only=True)
class OpenAIConfig:
    """Which model is asked, where, and how much a turn may take.

    Attributes:
        model: name of the model, as the endpoint knows it; without one the plugin is not configured.
        base_url: address of the endpoint, up to ``/v1``.
        key_env: variable that holds the key. key_file: file that holds it, readable by its owner alone; asked where
            the variable is not set. An endpoint on another address than OpenAI's may do without a key.
        organisation, project: sent where they are set.
        temperature, max_tokens: the model's own where they are not set. ``max_tokens`` is of one answer.
        timeout_s: longest silence of the endpoint. connect_timeout_s: longest wait for a connection.
        retries: repetitions of a request that failed before anything of its answer was shown.
        retry_wait_s: longest wait before a repetition; an endpoint that asks for more ends the turn.
        max_steps: most requests of a turn. turn_timeout_s: most seconds. turn_tokens: most tokens, 0 for no limit.
        max_calls: most calls of one answer; what is more is left out, and the model is told.
        answer_bytes: most bytes of one answer, as they come over the wire; a longer one is cut off.
        tool_timeout_s: seconds that a tool may take which names no limit of its own.
        stream: whether answers are asked for in pieces.
        session_search: whether the model may search earlier conversations.
        send_files: whether the model may send files that it writes.
        context_tokens: what the model can read; 0 where nobody knows: then the first refusal tells.
        inputs: what of this turn's attachments the model takes as it is: ``image``, ``audio``, ``document``; the rest
            stands as text. input_bytes: most bytes of one that is sent so.
        image_model, transcription_model: describe pictures, and write down what is said, for later turns and for models
            that take neither; asked at the same endpoint, nobody where empty.
        summaries: whether the model summarises what is compressed. titles: whether it finds titles. summary_model,
            title_model: who does; ``model`` where empty.
        reasoning_field: where a model wants its own reasoning back (``reasoning_content``); not sent where empty.
        prices: by model; the cost of a model that is not there is unknown.
    """

    model: str = ""
    base_url: str = OPENAI
    key_env: str = "OPENAI_API_KEY"
    key_file: str = ""
    organisation: str = ""
    project: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_s: float = 120.0
    connect_timeout_s: float = 15.0
    retries: int = 4
    retry_wait_s: float = 60.0
    max_steps: int = 50
    turn_timeout_s: float = 1500.0
    turn_tokens: int = 0
    max_calls: int = 100
    answer_bytes: int = 50_000_000
    tool_timeout_s: float = 300.0
    stream: bool = True
    session_search: bool = True
    send_files: bool = True
    context_tokens: int = 0
    inputs: tuple[str, ...] = ()
    input_bytes: int = 20_000_000
    image_model: str = ""
    transcription_model: str = ""
    summaries: bool = True
    summary_model: str = ""
    titles: bool = True
    title_model: str = ""
    reasoning_field: str = ""
    prices: Mapping[str, Price] = attrs.field(factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, object]) -> OpenAIConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, or a value out of range; it names the key.
        """
        known = [field.name for field in attrs.fields(cls)]
        values: dict[str, object] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"{key} is unknown; there are {', '.join(known)}", key=key)
            if key == "prices":
                values[key] = _prices(value)
            elif key == "inputs":
                values[key] = _inputs(value)
            elif key in _TEXTS:
                values[key] = _text(key, value)
            elif key in _SWITCHES:
                if not isinstance(value, bool):
                    raise ConfigError(f"{key} = {value!r} is neither true nor false", key=key)
                values[key] = value
            else:
                values[key] = _number(key, value, *_BOUNDS[key])
        # every value was compared with the type of its field
        return cls(**values)  # type: ignore[arg-type]

    def priced(self, usage: Usage) -> Usage:
        """Return the usage of one call with its cost, where the price of its model is known."""
        price = None if usage.model is None else self.prices.get(usage.model)
        return usage if price is None else attrs.evolve(usage, estimated_cost_usd=price.cost(usage))

    @property
    def place_of_key(self) -> str:
        """What a person is told who gave no key."""
        return f"put it into {self.key_env or 'a variable that key_env names'}, or into a file that key_file names"

    @property
    def asks_openai(self) -> bool:
        """Whether OpenAI itself is asked."""
        return self.base_url == OPENAI


INPUTS = ("image", "audio", "document")
"""Kinds of attachments that a model may take as they are."""

_TEXTS = (
    *("model", "base_url", "key_env", "key_file", "organisation", "project", "reasoning_field"),
    *("image_model", "transcription_model", "summary_model", "title_model"),
)
_SWITCHES = ("stream", "session_search", "send_files", "summaries", "titles")
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_BOUNDS: Mapping[str, tuple[float, float, bool]] = {
    "temperature": (0, 2, False),
    "max_tokens": (1, 10_000_000, True),
    "timeout_s": (0.01, 3600, False),
    "connect_timeout_s": (0.01, 600, False),
    "retries": (0, 100, True),
    "retry_wait_s": (0, 3600, False),
    "max_steps": (1, 10_000, True),
    "turn_timeout_s": (0.01, 604_800, False),
    "turn_tokens": (0, 10**12, True),
    "max_calls": (1, 10_000, True),
    "answer_bytes": (1000, 10**12, True),
    "tool_timeout_s": (0.01, 604_800, False),
    "context_tokens": (0, 100_000_000, True),
    "input_bytes": (0, 1_000_000_000, True),
}
"""Lowest and highest value, and whether it is a whole number."""


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{key} = {value!r} is no text", key=key)
    text = value.strip()
    if key == "key_env" and text and not _VARIABLE.fullmatch(text):  # not quoted: it may be the key itself
        raise ConfigError("key_env is no name of a variable; the key stands in that variable, not here", key=key)
    if any(not character.isprintable() for character in text):
        raise ConfigError(f"{key} = {value!r} holds what cannot be printed", key=key)
    return _address(text) if key == "base_url" else text


def _address(text: str) -> str:
    if "@" in text or "?" in text:  # not quoted: what stands there may be a secret
        raise ConfigError(
            "base_url is no plain address: https://host/v1, without a name or a key in it", key="base_url"
        )
    if not text.startswith(("http://", "https://")):
        raise ConfigError(f"base_url = {text!r} is no address: https://host/v1", key="base_url")
    return text.rstrip("/")


def _number(key: str, value: object, low: float, high: float, whole: bool) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"{key} = {value!r} is no {'whole number' if whole else 'number'}", key=key)
    if not low <= value <= high:
        raise ConfigError(f"{key} = {value!r} is out of range: {low:g} to {high:g}", key=key)
    return value if whole else float(value)


def _inputs(value: object) -> tuple[str, ...]:
    kinds = value if isinstance(value, list | tuple) else None
    if kinds is None or any(kind not in INPUTS for kind in kinds):
        raise ConfigError(f'inputs = {value!r} is no list of {", ".join(INPUTS)}; write ["image"]', key="inputs")
    return tuple(dict.fromkeys(kinds))


def _prices(table: object) -> Mapping[str, Price]:
    if not isinstance(table, Mapping):
        raise ConfigError('prices is no table; write [plugins.openai.prices."name of the model"]', key="prices")
    return {str(model): _price(f"prices.{model}", entry) for model, entry in table.items()}


def _price(place: str, entry: object) -> Price:
    kinds = [field.name for field in attrs.fields(Price)]
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place} is no table; write input and output, in US dollars for a million tokens", key=place)
    for kind in entry:
        if kind not in kinds:
            raise ConfigError(f"{place}.{kind} is unknown; there are {', '.join(kinds)}", key=f"{place}.{kind}")
    if missing := [kind for kind in ("input", "output") if kind not in entry]:
        raise ConfigError(f"{place}.{missing[0]} is missing", key=f"{place}.{missing[0]}")
    amounts = {kind: float(_number(f"{place}.{kind}", amount, 0, 1_000_000, False)) for kind, amount in entry.items()}
    return Price(**amounts)
