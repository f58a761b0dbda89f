"""A tool made of a function: what the model may ask for comes from its type hints, what it is told from its docstring.

::

    @tool(effect="read")
    async def weather(city: str, days: int = 1) -> str:
        \"\"\"Say what the weather will be.

        :param city: its name, in any language. days: how many.
        \"\"\"

    class WeatherPlugin:
        @hookimpl
        def hermes_tools(self):
            return (weather,)

A function that returns an :class:`~hermes_hookspecs.files.OutgoingFile`, or several in a
:class:`~hermes_hookspecs.files.FileResult`, lets the answer of the turn bring them along.

The docstring up to its first field is the description; ``:param name:`` (of several in one field, as above, too) or
``Annotated[str, "..."]`` describes a parameter. Types are those of :mod:`hermes_hookspecs.parameters`. A parameter of
the type :class:`~hermes_hookspecs.ports.agent.TurnContext` is given the turn and is not shown to the model. A plain
function runs in a thread of its own: it never holds up the event loop, nor the end of the program when it hangs.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Literal, get_args, get_type_hints

from hermes_hookspecs.files import FileResult, OutgoingFile
from hermes_hookspecs.parameters import ArgumentFault, Field, Record
from hermes_hookspecs.ports.agent import TurnContext

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

__all__ = ["EFFECTS", "Effect", "FunctionTool", "in_thread", "is_tool_name", "result_text", "tool"]

Effect = Literal["read", "idempotent", "write"]
EFFECTS: tuple[str, ...] = get_args(Effect)
"""What a repetition would do: nothing at all, nothing more, something again."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def is_tool_name(name: str) -> bool:
    """Return whether endpoints take a tool of this name: 1 to 64 ASCII letters, digits, ``_`` and ``-``."""
    return _NAME.fullmatch(name) is not None


class FunctionTool:
    """A :class:`~hermes_hookspecs.ports.agent.Tool` that calls a function. Made by :func:`tool`.

    Attributes:
        dangerous: asks a person first. timeout_s: seconds that one call may take, ``None`` for the agent's limit.
        most_characters: of a result; the middle of a longer one is left out.
        function: what is called; calling the tool itself calls it, too, as if it were not decorated.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str,
        description: str,
        effect: str,
        dangerous: bool,
        timeout_s: float | None,
        most_characters: int,
    ) -> None:
        if not is_tool_name(name):
            raise TypeError(f"{name!r} is no name of a tool: 1 to 64 ASCII letters, digits, _ and -")
        if effect not in EFFECTS:
            raise TypeError(f"{name}: effect = {effect!r} is unknown; there are: {', '.join(EFFECTS)}")
        if most_characters < 1 or (timeout_s is not None and timeout_s <= 0):
            raise TypeError(f"{name}: a limit is more than nothing")
        self.name = name
        self.effect = effect
        self.dangerous = dangerous
        self.timeout_s = timeout_s
        self.most_characters = most_characters
        self.function = function
        first, said = _documented(inspect.getdoc(function) or "", tuple(inspect.signature(function).parameters))
        self.description = description or first
        if not self.description:
            raise TypeError(f"{name}: a model must be told what it does; give it a docstring")
        fields, self._turns = _signature(function, name, said)
        self._record = Record(fields)
        self.parameters: Mapping[str, object] = self._record.schema()

    def __call__(self, *arguments: object, **named: object) -> object:
        """Return what the function returns."""
        return self.function(*arguments, **named)

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str | FileResult:
        """Return the result as text, see :func:`result_text`, at most ``most_characters`` of it; files as they are.

        :raises ArgumentFault: the arguments do not fit; nothing was called. What the function raises passes.
        """
        faults: list[str] = []
        values = self._record.values(arguments, "", faults)
        if faults:
            raise ArgumentFault("; ".join(faults))
        values |= dict.fromkeys(self._turns, turn)
        if inspect.iscoroutinefunction(self.function):
            result = await self.function(**values)
        else:
            result = await in_thread(lambda: self.function(**values))
        if isinstance(result, OutgoingFile):
            result = FileResult(files=(result,))
        if isinstance(result, FileResult):
            return FileResult(files=result.files, text=shortened(result.text, self.most_characters))
        return shortened(result_text(result), self.most_characters)


def tool(
    function: Callable[..., object] | None = None,
    *,
    effect: Effect = "write",
    dangerous: bool = False,
    name: str = "",
    description: str = "",
    timeout_s: float | None = None,
    most_characters: int = 50_000,
) -> Callable[[Callable[..., object]], FunctionTool]:
    """Return a decorator that makes a tool of a function, synchronous or not.

    :param effect: ``read``, ``idempotent`` or ``write``: what a repetition after a crash would do.
    :param dangerous: whether a person is asked before each call.
    :param name, description: of the function and its docstring where they are not given.
    :param timeout_s: seconds that one call may take; the agent's limit where ``None``. A plain function cannot be
        broken off: its thread goes on and what it returns is dropped.
    :param most_characters: of a result; the middle of a longer one is left out.
    :raises TypeError: at once, when the function cannot be offered: no docstring, or a type without a JSON schema.
    """
    if function is not None:
        raise TypeError("write @tool(effect=...): a tool says what a repetition of it would do")

    def made(function: Callable[..., object]) -> FunctionTool:
        return FunctionTool(
            function,
            name=name or function.__name__,
            description=description,
            effect=effect,
            dangerous=dangerous,
            timeout_s=timeout_s,
            most_characters=most_characters,
        )

    return made


def result_text(result: object) -> str:
    """Return a result as a model reads it: text as it is, nothing as ``ok``, anything else as JSON.

    attrs classes and dataclasses become objects, enums their values; what JSON does not have becomes its ``str``, and
    so does the whole where it cannot be JSON: a key that is no text, a circle. It raises nothing: what returned it has
    taken effect, and must not look as if it had failed.
    """
    if isinstance(result, str):
        return result
    if result is None:
        return "ok"
    import json

    try:
        return json.dumps(result, ensure_ascii=False, default=_jsonable)
    except Exception:  # noqa: BLE001 - what a foreign object does when it is written down is its own affair
        return words_of(result)


def words_of(value: object) -> str:
    """Return the ``str`` of a foreign object, an exception for one; its type where it has none that can be made."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - as above
        return f"a {type(value).__name__} that cannot be written down"


def shortened(text: str, most: int) -> str:
    """Return a text of at most about ``most`` characters: its beginning, what was left out, its end."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most} characters left out …]\n{text[len(text) - tail :]}"


def _jsonable(value: object) -> object:
    import enum

    import attrs

    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    kind = type(value)
    if attrs.has(kind):
        return {each.name: getattr(value, each.name) for each in attrs.fields(kind)}
    names = getattr(kind, "__dataclass_fields__", None)
    return str(value) if names is None else {name: getattr(value, name) for name in names}


def _signature(
    function: Callable[..., object], name: str, said: Mapping[str, str]
) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Return what a model is asked for, in order, and the names of the parameters that take the turn."""
    try:
        hints = get_type_hints(function, localns={"TurnContext": TurnContext}, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: {error}; the types of a tool are imported where they exist at run time") from error
    fields: list[Field] = []
    turns: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise TypeError(f"{name}: {each} cannot be given by name")
        if each.name not in hints:
            raise TypeError(f"{name}: {each.name} has no type")
        if hints[each.name] is TurnContext:
            turns.append(each.name)
            continue
        fields.append(
            Field(
                name=each.name,
                hint=hints[each.name],
                description=said.get(each.name, ""),
                has_default=each.default is not each.empty,
                default=None if each.default is each.empty else each.default,
            )
        )
    return tuple(fields), tuple(turns)


def _documented(text: str, names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the description, and what is said of each parameter in the fields behind it."""
    description, *fields = re.split(r"\n(?=:)", text)
    described: dict[str, str] = {}
    known = "|".join(map(re.escape, names))
    for field in fields:
        if not names or not field.startswith(":param"):
            continue
        # `:param city: its name. days: how many.` describes two
        pieces = re.split(rf"(?:^:param\s+|(?<=[.;])\s+)({known}):\s*", field)
        described |= {name: " ".join(words.split()) for name, words in zip(pieces[1::2], pieces[2::2], strict=True)}
    return " ".join(description.split()), described


async def in_thread(work: Callable[[], object]) -> object:
    """Return what ``work`` returns; it runs in a thread that neither the loop nor the end of the program waits for."""
    import asyncio
    import contextvars
    import threading

    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: object, error: BaseException | None) -> None:
        if done.done():
            return  # nobody waits any more
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result: object = None
        fault: BaseException | None = None
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the call gets it
            fault = RuntimeError("the tool ended its own thread") if isinstance(error, StopIteration) else error
        try:
            loop.call_soon_threadsafe(settle, result, fault)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    threading.Thread(target=run, name="hermes-tool", daemon=True).start()
    result = await done
    if inspect.isawaitable(result):
        awaited: Coroutine[object, object, object] = result  # type: ignore[assignment]  # a function that returns one
        return await awaited
    return result
