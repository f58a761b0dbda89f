"""Write ``docs/hooks.md`` and ``hookspecs/api/v1.txt`` from the hook specifications, or check that they are current.

    python tools/hookdocs.py            writes both
    python tools/hookdocs.py --check    ends with 1, and says where, when one of them is not what would be written

The specifications are the functions of the modules in ``hermes_hookspecs.specs.ALL_SPECS`` that carry
``hermes_options``; their docstrings are the text. ``api/v1.txt`` has one sorted line a hook, so a change of the
contract is seen in review as a changed line.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

from hermes_hookspecs.markers import HookOptions, hook_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

__all__ = ["Hook", "api_lines", "find_hooks", "main", "render_page"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/hooks.md")
API = Path("hookspecs/api/v1.txt")
_HINT = "run `make docs` and commit the result"
_MOST_DIFF_LINES = 40
_LONGEST_SIGNATURE = 100

_INTRODUCTION = """\
# Hooks

<!-- Written by tools/hookdocs.py from hermes_hookspecs.specs; change the specifications and run `make docs`. -->

A *provider* runs once at start and returns objects that satisfy a port. A *decision* is synchronous, pure and without
I/O. An *event* says what happened (or, `before`, is about to), outside any transaction, on copies; its results are
ignored. *On error* `raise` means that the call fails with `PluginError`; `skip` means that the failure is logged and
counted, and the others go on.
"""

_ROLE = re.compile(r":(?:[a-z]+:)?[a-z]+:`(~?)([^`<]+)`")
_FIELD = re.compile(r":(?P<word>param|returns?|raises?)(?:\s+(?P<name>[^:]+))?:\s*(?P<text>.*)")
_VERSION = re.compile(r"\.\.\s+version(?P<what>added|changed)::\s*(?P<text>.*)")


class Hook(NamedTuple):
    """One specification: its ``name``, the ``module`` it stands in, the function and what it declares."""

    name: str
    module: str
    function: Callable[..., object]
    options: HookOptions

    @property
    def signature(self) -> str:
        """Arguments with annotations and the return annotation, as written in the source."""
        return f"({', '.join(_arguments(self.function))}) -> {self.result}"

    @property
    def result(self) -> str:
        """The return annotation alone."""
        return _annotation(inspect.signature(self.function).return_annotation)

    @property
    def results(self) -> str:
        """What becomes of the results, in words for the table."""
        if self.options.kind == "event":
            return "ignored"
        return "first that is not `None`" if self.options.firstresult else "all"


def find_hooks(modules: Iterable[ModuleType]) -> list[Hook]:
    """Return the specifications of ``modules``, in the order of the modules and of their definition.

    :raises SystemExit: when two modules specify the same hook, or a specification has no docstring or lacks
        an annotation.
    """
    hooks: dict[str, Hook] = {}
    for module in modules:
        for name, value in vars(module).items():
            if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
                continue
            if not hasattr(value, "hermes_options"):
                continue
            _insist_on_quality(name, module.__name__, value)
            if name in hooks:
                sys.exit(f"{name} is specified twice: in {hooks[name].module} and in {module.__name__}")
            hooks[name] = Hook(name, module.__name__, value, hook_options(value))
    return list(hooks.values())


def api_lines(hooks: Iterable[Hook]) -> str:
    """Return ``name(arguments) -> result kind firstresult|all on_error``, one line a hook, sorted."""
    lines = [
        f"{hook.name}{hook.signature} {hook.options.kind} "
        f"{'firstresult' if hook.options.firstresult else 'all'} {hook.options.on_error}"
        for hook in hooks
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def render_page(modules: Sequence[ModuleType]) -> str:
    """Return the whole of ``docs/hooks.md``: introduction, one table, one section a hook under its module's title."""
    hooks = find_hooks(modules)
    parts = [_INTRODUCTION, "| hook | kind | results | on error |\n| --- | --- | --- | --- |\n"]
    parts[-1] += "".join(
        f"| [`{hook.name}`](#{hook.name}) | {hook.options.kind} | {hook.results} | {hook.options.on_error} |\n"
        for hook in hooks
    )
    for module in modules:
        own = [hook for hook in hooks if hook.module == module.__name__]
        if own:
            parts.append(f"## {module.__name__.rpartition('.')[2].replace('_', ' ').capitalize()}\n")
            parts.append(_markdown(inspect.getdoc(module) or ""))
            parts += [_section(hook) for hook in own]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part.strip())


def main(
    arguments: Sequence[str] | None = None, *, modules: Sequence[ModuleType] | None = None, root: Path = ROOT
) -> int:
    """Write or check the two files under ``root``; return the exit code.

    :param modules: the specification modules; ``None`` for those of the contract.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when a file is not current")
    check = bool(parser.parse_args(arguments).check)
    if modules is None:
        from hermes_hookspecs.specs import ALL_SPECS

        modules = ALL_SPECS
    wanted = {PAGE: render_page(modules), API: api_lines(find_hooks(modules))}
    if check:
        stale = [path for path, text in wanted.items() if not _is_current(root, path, text)]
        return 1 if stale else 0
    for path, text in wanted.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return 0


def _insist_on_quality(name: str, module: str, function: FunctionType) -> None:
    if not function.__doc__:
        sys.exit(f"{module}.{name} has no docstring: it is the hook's documentation")
    parameters = inspect.signature(function).parameters
    missing = [each for each in (*parameters, "return") if each not in function.__annotations__]
    if missing:
        sys.exit(f"{module}.{name} lacks the annotation of {', '.join(missing)}")


def _arguments(function: Callable[..., object]) -> list[str]:
    """Render without the quotes that ``inspect`` puts around annotations kept as text."""
    return [
        f"{parameter.name}: {_annotation(parameter.annotation)}"
        + ("" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}")
        for parameter in inspect.signature(function).parameters.values()
    ]


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _section(hook: Hook) -> str:
    """One hook: heading, signature (one argument a line when long), what it declares, its docstring."""
    signature = f"def {hook.name}{hook.signature}"
    if len(signature) > _LONGEST_SIGNATURE:
        arguments = "".join(f"    {argument},\n" for argument in _arguments(hook.function))
        signature = f"def {hook.name}(\n{arguments}) -> {hook.result}"
    declared = f"*{hook.options.kind}, results: {hook.results}, on error: {hook.options.on_error}*"
    text = _markdown(inspect.getdoc(hook.function) or "")
    return f"### {hook.name}\n\n```python\n{signature}\n```\n\n{declared}\n\n{text}"


def _markdown(text: str) -> str:
    """Turn a docstring with Sphinx fields into Markdown: fields become lists, ``::`` blocks become fences."""
    rendered = ""
    for lines in _split(text.expandtabs(4).splitlines()):
        block = _block(lines)
        in_list = block.startswith("- ") and rendered.rpartition("\n")[2].startswith("- ")
        rendered += ("" if not rendered else "\n" if in_list else "\n\n") + block
    return rendered + "\n"


def _split(lines: list[str]) -> Iterator[list[str]]:
    """Yield paragraphs, fields (with their continuation lines) and literal blocks (indented, blank lines inside)."""
    block: list[str] = []
    for number, line in enumerate(lines):
        literal = bool(block) and block[0].startswith("    ")
        following = next((each for each in lines[number:] if each.strip()), "")
        ends = not line.strip() and not (literal and following.startswith("    "))
        if ends or (block and re.match(r"(:\w|\.\. )", line)):
            if block:
                yield block
            block = [] if ends else [line]
        else:
            block.append(line)
    if block:
        yield block


def _block(lines: list[str]) -> str:
    if lines[0].startswith("    "):
        return "```python\n" + inspect.cleandoc("\n" + "\n".join(lines)) + "\n```"
    flowing = " ".join(line.strip() for line in lines)
    if version := _VERSION.fullmatch(flowing):
        word = "New in" if version["what"] == "added" else "Changed in"
        return _inline(f"*{word} {version['text']}*")
    if field := _FIELD.fullmatch(flowing):
        word = {"param": "", "return": "returns", "raise": "raises"}.get(field["word"], field["word"])
        label = f"`{field['name']}`" if not word else f"**{word}**" + (f" `{field['name']}`" if field["name"] else "")
        return f"- {label}: {_inline(field['text'])}"
    listing = all(re.match(r"([-*] |  )", line) for line in lines)
    return _inline(re.sub(r"::$", ":", "\n".join(lines) if listing else flowing))


def _inline(text: str) -> str:
    """Roles and double backticks become code spans."""
    short = _ROLE.sub(lambda found: f"`{found[2].rpartition('.')[2] if found[1] else found[2]}`", text)
    return short.replace("``", "`")


def _is_current(root: Path, path: Path, wanted: str) -> bool:
    """Compare, and say on stderr what would change."""
    file = root / path
    have = file.read_text(encoding="utf-8") if file.exists() else ""
    if have == wanted:
        return True
    print(f"{path} is {'not current' if have else 'missing'}: {_HINT}", file=sys.stderr)
    difference = list(difflib.unified_diff(have.splitlines(), wanted.splitlines(), "committed", "current", lineterm=""))
    for line in difference[:_MOST_DIFF_LINES]:
        print(line, file=sys.stderr)
    if len(difference) > _MOST_DIFF_LINES:
        print(f"... and {len(difference) - _MOST_DIFF_LINES} more lines", file=sys.stderr)
    return False


if __name__ == "__main__":
    sys.exit(main())
