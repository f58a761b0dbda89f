"""tools/hookdocs.py: what it writes from a small module of specifications, and what it refuses."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

SPECS = '''
"""How small things are said."""

from __future__ import annotations

from hermes_hookspecs.markers import hookspec

@hookspec(kind="decision", on_error="raise", firstresult=True)
def hermes_build_word(source: Source, policy: Policy) -> Word | None:
    """Return the word of ``source``, or ``None``.

    See :class:`~hermes_hookspecs.values.Word` and :func:`build`.
    Stops early::

        word = build(source)

        print(word)

    :param source: where it came from; a second line
        goes on here.
    :param policy: what is allowed.
    :returns: at most 512 characters.
    :raises KeyBuildError: when there is none.

    .. versionadded:: 1.0
    """

@hookspec(kind="event", on_error="skip")
def hermes_after_word(word: Word, limit: int = 3) -> None:
    """Hear of a word."""

@hookspec(kind="provider", on_error="skip")
def hermes_words() -> Sequence[Word] | None:
    """Return words."""

def helper() -> None:
    """No specification."""
'''


def _load_tool():
    spec = importlib.util.spec_from_file_location("hookdocs_under_test", ROOT / "tools" / "hookdocs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hookdocs = _load_tool()


def _specs(source=SPECS, name="fake.specs.small_words"):
    module = types.ModuleType(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def test_api_has_one_sorted_line_a_hook_with_everything_it_declares():
    hooks = hookdocs.find_hooks([_specs()])

    lines = hookdocs.api_lines(hooks)

    assert lines.splitlines() == [
        "hermes_after_word(word: Word, limit: int = 3) -> None event all skip",
        "hermes_build_word(source: Source, policy: Policy) -> Word | None decision firstresult raise",
        "hermes_words() -> Sequence[Word] | None provider all skip",
    ]


def test_page_has_a_table_row_and_a_section_for_each_hook_in_order_of_definition():
    page = hookdocs.render_page([_specs()])

    assert "| [`hermes_build_word`](#hermes_build_word) | decision | first that is not `None` | raise |" in page
    assert "| [`hermes_after_word`](#hermes_after_word) | event | ignored | skip |" in page
    assert "| [`hermes_words`](#hermes_words) | provider | all | skip |" in page
    assert "## Small words\n\nHow small things are said." in page
    assert page.index("### hermes_build_word") < page.index("### hermes_after_word") < page.index("### hermes_words")
    assert "helper" not in page


def test_docstring_is_rendered_as_markdown():
    page = hookdocs.render_page([_specs()])

    assert "Return the word of `source`, or `None`." in page
    assert "See `Word` and `build`. Stops early:\n\n```python\nword = build(source)\n\nprint(word)\n```" in page
    assert (
        "- `source`: where it came from; a second line goes on here.\n"
        "- `policy`: what is allowed.\n"
        "- **returns**: at most 512 characters.\n"
        "- **raises** `KeyBuildError`: when there is none.\n\n"
        "*New in 1.0*"
    ) in page
    assert ":param" not in page
    assert "``source``" not in page


def test_long_signature_has_one_argument_a_line_and_keeps_defaults():
    arguments = ", ".join(f"argument_{number}: tuple[int, str]" for number in range(5))
    specs = _specs(
        "from hermes_hookspecs.markers import hookspec\n"
        "@hookspec(kind='event', on_error='skip')\n"
        f"def hermes_long({arguments}, last: int = 7) -> None:\n    'Hear.'\n"
    )

    page = hookdocs.render_page([specs])

    assert "def hermes_long(\n    argument_0: tuple[int, str],\n" in page
    assert "    last: int = 7,\n) -> None\n```" in page


def test_written_files_pass_the_check(tmp_path):
    modules = [_specs()]

    assert hookdocs.main([], modules=modules, root=tmp_path) == 0
    assert hookdocs.main(["--check"], modules=modules, root=tmp_path) == 0


@pytest.mark.parametrize("path", ["docs/hooks.md", "hookspecs/api/v1.txt"])
def test_check_fails_names_the_file_and_the_way_out_when_one_file_is_stale(tmp_path, capsys, path):
    modules = [_specs()]
    hookdocs.main([], modules=modules, root=tmp_path)
    (tmp_path / path).write_text("old\n", encoding="utf-8")

    code = hookdocs.main(["--check"], modules=modules, root=tmp_path)

    said = capsys.readouterr().err
    assert code == 1
    assert f"{path} is not current: run `make docs`" in said
    assert "-old" in said
    assert (tmp_path / path).read_text(encoding="utf-8") == "old\n"


def test_check_fails_when_nothing_was_ever_written(tmp_path, capsys):
    assert hookdocs.main(["--check"], modules=[_specs()], root=tmp_path) == 1

    assert "docs/hooks.md is missing" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_same_hook_in_two_modules_is_refused():
    with pytest.raises(SystemExit, match=r"hermes_\w+ is specified twice: in a\.one and in b\.two"):
        hookdocs.find_hooks([_specs(name="a.one"), _specs(name="b.two")])


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        ("def hermes_x(a: int) -> None: ...", "no docstring"),
        ("def hermes_x(a) -> None:\n    'Text.'", "lacks the annotation of a"),
        ("def hermes_x(a: int):\n    'Text.'", "lacks the annotation of return"),
    ],
)
def test_a_specification_without_documentation_or_types_is_refused(definition, complaint):
    specs = _specs(
        "from hermes_hookspecs.markers import hookspec\n@hookspec(kind='event', on_error='skip')\n" + definition
    )

    with pytest.raises(SystemExit, match=complaint):
        hookdocs.find_hooks([specs])


def test_a_specification_imported_from_another_module_is_not_counted_there():
    origin = _specs(name="a.one")
    importer = types.ModuleType("b.two")
    importer.hermes_words = origin.hermes_words

    assert len(hookdocs.find_hooks([origin, importer])) == 3
