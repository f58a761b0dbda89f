"""Settings, prices and keys."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.turns import Usage
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig, Price
from hermes_openai.keys import key_of, without_key


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"modell": "m"}, "modell is unknown; there are model"),
        ({"model": 1}, "is no text"),
        ({"model": "a\nb"}, "cannot be printed"),
        ({"base_url": "localhost:80"}, "is no address"),
        ({"base_url": "https://me:secret@host/v1"}, "is no plain address"),
        ({"key_env": "sk-12345678"}, "is no name of a variable"),
        ({"stream": "yes"}, "neither true nor false"),
        ({"temperature": 3}, "out of range: 0 to 2"),
        ({"temperature": True}, "is no number"),
        ({"max_tokens": 1.5}, "is no whole number"),
        ({"retries": -1}, "out of range"),
        ({"inputs": "image"}, "is no list of image, audio, document"),
        ({"inputs": ["picture"]}, "is no list of"),
        ({"inputs": [1]}, "is no list of"),
        ({"context_tokens": -1}, "out of range"),
        ({"titles": "no"}, "neither true nor false"),
        ({"summary_model": 1}, "is no text"),
        ({"prices": 1}, "prices is no table"),
        ({"prices": {"m": 1}}, "prices.m is no table"),
        ({"prices": {"m": {"input": 1}}}, "prices.m.output is missing"),
        ({"prices": {"m": {"input": 1, "output": 1, "hour": 1}}}, "prices.m.hour is unknown"),
        ({"prices": {"m": {"input": "1", "output": 1}}}, "prices.m.input = '1' is no number"),
    ],
)
def test_a_mistake_in_the_settings_is_told(table, said):
    with pytest.raises(ConfigError, match=said) as caught:
        OpenAIConfig.of(table)

    assert caught.value.key.startswith(next(iter(table)))


@pytest.mark.parametrize(
    "table",
    [
        {"base_url": "https://me:sk-12345678@host/v1"},
        {"base_url": "https://host/v1?key=sk-12345678"},
        {"key_env": "sk-12345678"},
        {"api_key": "sk-12345678"},
    ],
)
def test_a_key_that_stands_in_the_wrong_place_is_not_told(table):
    with pytest.raises(ConfigError) as caught:
        OpenAIConfig.of(table)

    assert "sk-12345678" not in str(caught.value)


def test_settings_are_taken_as_the_configuration_gives_them():
    prices = MappingProxyType({"m": MappingProxyType({"input": 1, "output": 2.5})})

    config = OpenAIConfig.of(MappingProxyType({"base_url": " https://host/v1/ ", "temperature": 1, "prices": prices}))

    assert (config.base_url, config.temperature) == ("https://host/v1", 1.0)
    assert config.prices == {"m": Price(input=1.0, output=2.5)}


@pytest.mark.parametrize(
    ("price", "used", "cost"),
    [
        (Price(input=2, output=8), (1_000_000, 500_000, None, None), 6.0),
        (Price(input=2, output=8, cached=1), (1_000_000, 0, 250_000, None), 1.75),
        (Price(input=2, output=8), (1_000_000, 0, 250_000, None), 2.0),
        (Price(input=2, output=8, cached=1, cache_write=4), (1_000_000, 0, 250_000, 250_000), 2.25),
        (Price(input=0, output=0), (5, 5, None, None), 0.0),
        (Price(input=2, output=8), (None, 5, None, None), None),
        (Price(input=2, output=8), (5, None, None, None), None),
    ],
)
def test_a_cost_is_counted_from_what_is_known(price, used, cost):
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

    assert price.cost(Usage(**dict(zip(names, used, strict=True)))) == cost


# ------------------------------------------------------------------ keys


@pytest.fixture
def key_file(tmp_path):
    file = tmp_path / "key"
    file.write_text("sk-from-file\n", encoding="utf-8")
    file.chmod(0o600)
    return file


def test_the_variable_comes_before_the_file(key_file):
    config = OpenAIConfig(key_file=str(key_file))

    assert key_of(config, {"OPENAI_API_KEY": " sk-from-variable "}) == "sk-from-variable"
    assert key_of(config, {}) == "sk-from-file"
    assert key_of(OpenAIConfig(key_env="MINE"), {"MINE": "sk-mine", "OPENAI_API_KEY": "sk-other"}) == "sk-mine"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_reach_is_refused(key_file, mode):
    key_file.chmod(mode)

    with pytest.raises(ConfigError, match=r"run: chmod 600"):
        key_of(OpenAIConfig(key_file=str(key_file)), {})


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        key_of(OpenAIConfig(key_file=str(tmp_path / "none")), {})


@pytest.mark.parametrize("key", ["sk-one sk-two", "sk-ключ", "sk-a\nX-Evil: 1"])
def test_what_is_no_key_is_refused_and_not_told(key):
    with pytest.raises(ConfigError) as caught:
        key_of(OpenAIConfig(), {"OPENAI_API_KEY": key})

    assert key not in str(caught.value)


def test_a_key_is_taken_out_of_texts():
    assert without_key("Incorrect API key: sk-12345678.", "sk-12345678") == "Incorrect API key: [key]."
    assert without_key("no key here", "") == "no key here"


@pytest.mark.parametrize("end", ["", "…"])
def test_a_key_that_was_cut_is_taken_out_too(end):
    assert without_key(f"Your key sk-1234567{end}", "sk-12345678") == f"Your key [key]{end}"
    assert without_key(f"Your key sk-1234{end}", "sk-12345678") == f"Your key sk-1234{end}"


# ------------------------------------------------------------------ ready or not


@pytest.mark.parametrize(
    ("table", "environ", "missing"),
    [
        ({}, {"OPENAI_API_KEY": "sk-1"}, "set [plugins.openai] model"),
        ({"model": "m"}, {}, "there is no key for https://api.openai.com/v1: put it into OPENAI_API_KEY"),
        ({"model": "m", "key_file": "/nowhere"}, {}, "cannot be read"),
        ({"model": "m"}, {"OPENAI_API_KEY": "sk-1"}, ""),
        ({"model": "m", "base_url": "http://localhost:11434/v1"}, {}, ""),
    ],
)
def test_an_agent_says_what_it_lacks(table, environ, missing):
    agent = OpenAIAgent(OpenAIConfig.of(table), environ=environ)

    assert missing in agent.setup
    assert agent.ready is (not missing)
