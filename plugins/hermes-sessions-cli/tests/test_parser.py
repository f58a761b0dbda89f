"""The command line, taken apart."""

from __future__ import annotations

import pytest

from hermes_cli.parser import global_values, locate, nearest, parse
from hermes_cli.table import CHAT, COMMANDS
from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption
from hermes_hookspecs.errors import ConfigError

TOY = CliCommand(
    path=("toy",),
    summary="",
    run="x:y",
    arguments=(CliArgument(name="first"), CliArgument(name="rest", required=False, many=True)),
    options=(
        CliOption(names=("--limit", "-n"), kind="int", default=3, least=1, most=9),
        CliOption(names=("--ratio",), kind="float", least=0, most=1),
        CliOption(names=("--tag", "-t"), many=True),
        CliOption(names=("--kind",), choices=("a", "b")),
        CliOption(names=("--yes", "-y"), kind="flag"),
        CliOption(names=("--verbose", "-v"), kind="flag"),
        CliOption(names=("--dry-run",), kind="flag"),
    ),
)


def chat(*tokens):
    found = locate(tokens, COMMANDS, CHAT)
    assert found.command is CHAT
    return parse(CHAT, found.rest)


def refused(*tokens):
    with pytest.raises(ConfigError) as caught:
        parse(TOY, tokens)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_line_without_words_means_the_default_command():
    assert locate([], COMMANDS, CHAT).command is CHAT
    assert locate(["-q", "sessions"], COMMANDS, CHAT).command is CHAT
    assert locate(["--agent", "echo", "--query=x"], COMMANDS, CHAT).command is CHAT


def test_global_options_stand_before_between_and_behind_the_words():
    for tokens in (
        ["--home", "/h", "--json", "sessions", "list"],
        ["sessions", "--json", "--home=/h", "list"],
        ["sessions", "list", "--home", "/h", "--json"],
    ):
        found = locate(tokens, COMMANDS, CHAT)
        values = parse(found.command, found.rest)

        assert found.path == ("sessions", "list")
        assert (values["home"], values["json"]) == ("/h", True)


def test_an_early_option_that_the_command_does_not_have_is_refused():
    found = locate(["--agent", "echo", "sessions", "list"], COMMANDS, CHAT)

    with pytest.raises(ConfigError, match="`hermes sessions list` has no option --agent"):
        parse(found.command, found.rest)


def test_a_word_that_is_no_command_is_named():
    assert locate(["sesions"], COMMANDS, CHAT).unknown == "sesions"
    found = locate(["sessions", "lst"], COMMANDS, CHAT)
    assert (found.path, found.command, found.unknown) == (("sessions",), None, "lst")
    assert locate(["sessions"], COMMANDS, CHAT).unknown is None


def test_the_value_of_continue_may_be_left_out():
    assert chat("-c")["continue"] == ""
    assert chat("-c", "-q", "x") == chat("-q", "x", "-c")
    assert chat("-c", "plan", "-q", "again")["continue"] == "plan"
    assert chat("--continue=my plan")["continue"] == "my plan"
    assert chat("--session=ID", "--continue")["continue"] == ""
    assert chat("-q", "x")["continue"] is None


def test_a_question_may_be_a_dash_or_begin_with_one():
    assert chat("-q", "-")["query"] == "-"
    assert chat("-q", "-1 + 2")["query"] == "-1 + 2"


def test_every_form_of_an_option_gives_the_same_value():
    for tokens in (["-n", "5"], ["-n5"], ["-n=5"], ["--limit", "5"], ["--limit=5"]):
        assert parse(TOY, ["x", *tokens])["limit"] == 5


def test_short_flags_may_be_joined_and_end_in_an_option_with_a_value():
    values = parse(TOY, ["x", "-yvn", "7"])

    assert (values["yes"], values["verbose"], values["limit"], values["dry_run"]) == (True, True, 7, False)


def test_absent_options_have_their_defaults():
    values = parse(TOY, ["x"])

    assert (values["limit"], values["tag"], values["kind"], values["yes"]) == (3, (), None, False)
    assert values["rest"] == ()


def test_repeated_options_are_collected_in_order():
    assert parse(TOY, ["x", "-t", "a", "--tag=b", "-tc"])["tag"] == ("a", "b", "c")


def test_the_last_argument_takes_the_rest_and_a_double_dash_ends_the_options():
    values = parse(TOY, ["a", "--yes", "b", "--", "--limit", "-y"])

    assert (values["first"], values["rest"]) == ("a", ("b", "--limit", "-y"))


@pytest.mark.parametrize("text", ["0", "10", "-5", "x", "1.5", ""])
def test_a_number_out_of_its_bounds_names_the_option_and_the_bounds(text):
    assert refused("x", "--limit", text) == f"option --limit wants a whole number from 1 to 9, not {text!r}"


@pytest.mark.parametrize("text", ["nan", "2", "a"])
def test_a_fraction_is_checked_too(text):
    assert "wants a number from 0 to 1" in refused("x", "--ratio", text)
    assert parse(TOY, ["x", "--ratio", "0.5"])["ratio"] == 0.5


def test_a_choice_names_what_there_is():
    assert refused("x", "--kind", "c") == "option --kind wants one of a, b, not 'c'"


@pytest.mark.parametrize("tokens", [("--limit",), ("--limit", "--yes"), ("-n", "--", "5")])
def test_a_missing_value_is_not_taken_from_the_next_option(tokens):
    assert "option" in refused("x", *tokens)
    assert "wants a whole number" in refused("x", *tokens)


def test_an_unknown_option_names_the_nearest_one():
    assert "has no option --limt; did you mean --limit?" in refused("x", "--limt", "3")
    assert "has no option -z" in refused("x", "-z")
    assert "takes no value" in refused("x", "--yes=1")


def test_missing_and_surplus_arguments_are_refused():
    assert "wants FIRST" in refused()
    with pytest.raises(ConfigError, match="does not take 'surplus'"):
        chat("--", "surplus")


def test_global_values_are_found_on_a_line_that_cannot_be_parsed():
    values = global_values(["frob", "--home", "/h", "--limt", "3", "--no-plugins", "--", "--db", "x"])

    assert (values["home"], values["no_plugins"], values["db"], values["help"]) == ("/h", True, None, False)


@pytest.mark.parametrize("option", ["--home", "--profile", "--db", "--agent"])
@pytest.mark.parametrize("words", [[], ["sessions", "list"], ["chat"]])
def test_an_option_at_the_end_of_the_line_wants_its_value(option, words):
    found = locate([*words, option], COMMANDS, CHAT)

    with pytest.raises(ConfigError, match=f"option {option} wants a value|has no option --agent"):
        parse(found.command, found.rest)


@pytest.mark.parametrize("option", ["--home", "--profile", "--db"])
@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_place_is_refused_wherever_it_is_read(option, blank):
    for tokens in ([option, blank], [f"{option}={blank}"]):
        with pytest.raises(ConfigError, match=f"option {option} wants a value"):
            chat(*tokens)
        with pytest.raises(ConfigError, match=f"option {option} wants a value"):
            global_values(["frob", *tokens])
    with pytest.raises(ConfigError, match=f"option {option} wants a value"):
        global_values(["frob", option])


def test_a_large_bound_is_told_with_all_its_digits():
    found = locate(["sessions", "list", "-n", "0"], COMMANDS, CHAT)

    with pytest.raises(ConfigError, match="option -n wants a whole number from 1 to 1000000, not '0'"):
        parse(found.command, found.rest)


def test_a_word_like_no_other_suggests_nothing():
    assert nearest("zzz", ["list", "show"]) == ""


def test_every_command_of_the_table_can_be_reached_and_imported():
    from importlib import import_module

    for command in COMMANDS:
        module, _, name = command.run.partition(":")

        assert callable(getattr(import_module(module), name))
        assert locate(command.path, COMMANDS, CHAT).command is command
