"""What a model may be asked for: the JSON schema of a Python type, and the value of that type which a model meant.

A type is one of: ``str``, ``int``, ``float``, ``bool``, ``None``, ``object`` (anything), an ``Enum``, a ``Literal``, a
union of these, a list, tuple or set of one type, a dictionary with text keys, an attrs class or a dataclass.
``Annotated[T, "text"]`` describes a value. Models write ``"3"`` for 3 and ``3.0`` for 3, so both are taken; nothing
else is guessed.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import attrs

__all__ = ["ArgumentFault", "Field", "Record", "Shape", "fields_of", "shape_of"]

_SCHEMA_NAMES: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}
_WORDS: Mapping[object, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_LISTS = (list, tuple, set, frozenset, Sequence, Iterable, AbstractSet)
_MAPPINGS = (dict, Mapping)
_MOST_SHOWN = 60


class ArgumentFault(ValueError):
    """Arguments do not fit; ``str(fault)`` names each place and what belongs there, for the model to correct."""


class Shape(Protocol):
    """A type, as far as JSON can say it."""

    def schema(self) -> dict[str, object]:
        """Return its JSON schema, a new one each time, its keys always in the same order."""
        ...

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        """Return what ``raw``, read from JSON, is as a value of the type.

        :param where: the place, for people: ``days``, ``items[2].name``.
        :param faults: what does not fit is added to it; the value is then worth nothing.
        """
        ...


@attrs.frozen(kw_only=True)
class Field:
    """One named value of an object.

    Attributes:
        has_default: whether it may be left out; ``default`` is what it is then, shown to the model where it is plain.
    """

    name: str
    hint: object
    description: str = ""
    has_default: bool = False
    default: object = None


def shape_of(hint: object) -> Shape:
    """Return the shape of a type. :raises TypeError: a type that is not described here, or that contains itself."""
    return _shape(hint, ())


def fields_of(kind: type) -> tuple[Field, ...] | None:
    """Return what the constructor of an attrs class or dataclass takes, in order; ``None`` for another type."""
    if attrs.has(kind):
        hints = get_type_hints(kind, include_extras=True)
        return tuple(
            Field(
                name=each.alias or each.name,
                hint=hints.get(each.name, object),
                has_default=each.default is not attrs.NOTHING,
                default=each.default,
            )
            for each in attrs.fields(kind)
            if each.init
        )
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    import dataclasses

    missing = dataclasses.MISSING
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        Field(
            name=each.name,
            hint=hints[each.name],
            has_default=each.default is not missing or each.default_factory is not missing,
            default=each.default,
        )
        for each in dataclasses.fields(kind)
        if each.init
    )


def _shape(hint: object, inside: tuple[type, ...]) -> Shape:
    if hint is object:
        return _Anything()
    if hint is None or hint in _SCHEMA_NAMES:
        return _Plain(types.NoneType if hint is None else hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is not None:
        return _shape_of_several(hint, origin, arguments, inside)
    if hint in _LISTS or hint in _MAPPINGS:
        return _shape_of_several(hint, hint, (), inside)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _Choice({member.value: member for member in hint})
    fields = fields_of(hint) if isinstance(hint, type) else None
    if not isinstance(hint, type) or fields is None:
        raise TypeError(f"{_shown(hint)} is no type that a model can be asked for; see hermes_hookspecs.parameters")
    if hint in inside:
        raise TypeError(f"{_shown(hint)} contains itself; what a model is asked for has an end")
    return Record(fields, hint, (*inside, hint))


def _shape_of_several(hint: object, origin: object, arguments: tuple[object, ...], inside: tuple[type, ...]) -> Shape:
    """Return the shape of a type that is written with brackets, or could be."""
    if origin is Annotated:
        said = [extra for extra in arguments[1:] if isinstance(extra, str)]
        shape = _shape(arguments[0], inside)
        return _Described(shape, said[0]) if said else shape
    if origin is Literal:
        return _Choice({value: value for value in arguments})
    if origin in (Union, types.UnionType):
        return _Either(tuple(_shape(one, inside) for one in arguments))
    if origin in _MAPPINGS:
        if arguments and arguments[0] is not str:
            raise TypeError(f"{_shown(hint)}: keys of an object are text")
        return _Table(_shape(arguments[1] if arguments else object, inside))
    if origin not in _LISTS:
        raise TypeError(f"{_shown(hint)} is no type that a model can be asked for; see hermes_hookspecs.parameters")
    if origin is tuple and arguments and arguments[1:] != (Ellipsis,):
        raise TypeError(f"{_shown(hint)}: a tuple is of one type, tuple[T, ...]")
    return _Listing(_shape(arguments[0] if arguments else object, inside), origin)


class _Anything:
    def schema(self) -> dict[str, object]:
        return {}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        return raw


@attrs.frozen
class _Plain:
    kind: object

    def schema(self) -> dict[str, object]:
        return {"type": _SCHEMA_NAMES[self.kind]}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        if self.kind is types.NoneType:
            return None if raw is None else _fault(faults, where, raw, "null")
        if self.kind is bool or self.kind is str:
            fits = isinstance(raw, bool if self.kind is bool else str)
            return raw if fits else _fault(faults, where, raw, _WORDS[self.kind])
        number = _number(raw)
        if self.kind is int and isinstance(number, float) and number.is_integer():
            return int(number)
        if number is None or (self.kind is int and isinstance(number, float)):
            return _fault(faults, where, raw, _WORDS[self.kind])
        try:
            return float(number) if self.kind is float else number
        except OverflowError:
            return _fault(faults, where, raw, _WORDS[self.kind])

    def fits(self, raw: object) -> bool:
        """Return whether ``raw`` is of the type already."""
        return type(raw) is self.kind


@attrs.frozen
class _Choice:
    choices: Mapping[object, object]

    def __attrs_post_init__(self) -> None:
        if any(type(value) not in _SCHEMA_NAMES for value in self.choices):
            raise TypeError(f"a choice is of text and numbers, not of {_shown(list(self.choices))}")

    def schema(self) -> dict[str, object]:
        kinds = {type(value) for value in self.choices}
        return ({"type": _SCHEMA_NAMES[kinds.pop()]} if len(kinds) == 1 else {}) | {"enum": list(self.choices)}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        for value, meant in self.choices.items():
            if type(value) is type(raw) and value == raw:
                return meant
        return _fault(faults, where, raw, f"one of {', '.join(map(_shown, self.choices))}")


@attrs.frozen
class _Either:
    shapes: tuple[Shape, ...]

    def schema(self) -> dict[str, object]:
        return {"anyOf": [one.schema() for one in self.shapes]}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        """Return the value of the first type that has ``raw`` as it is, else of the first that takes it at all."""
        if any(isinstance(one, _Plain) and one.fits(raw) for one in self.shapes):
            return raw
        complaints: list[str] = []
        for one in self.shapes:
            own: list[str] = []
            value = one.value(raw, where, own)
            if not own:
                return value
            complaints += own
        faults.append(" or ".join(dict.fromkeys(complaints)))
        return None


@attrs.frozen
class _Listing:
    item: Shape
    into: object

    def schema(self) -> dict[str, object]:
        return {"type": "array", "items": self.item.schema()}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        if isinstance(raw, str) or not isinstance(raw, Sequence):
            return _fault(faults, where, raw, "a list")
        values = [self.item.value(one, f"{where}[{number}]", faults) for number, one in enumerate(raw)]
        if self.into is tuple:
            return tuple(values)
        if self.into not in (set, frozenset, AbstractSet):
            return values
        try:
            return frozenset(values) if self.into is frozenset else set(values)
        except TypeError:
            return _fault(faults, where, raw, "a list of plain values")


@attrs.frozen
class _Table:
    item: Shape

    def schema(self) -> dict[str, object]:
        return {"type": "object", "additionalProperties": self.item.schema()}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        if not isinstance(raw, Mapping):
            return _fault(faults, where, raw, "an object")
        return {str(key): self.item.value(one, _inside(where, str(key)), faults) for key, one in raw.items()}


@attrs.frozen
class _Described:
    shape: Shape
    words: str

    def schema(self) -> dict[str, object]:
        return self.shape.schema() | {"description": self.words}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        return self.shape.value(raw, where, faults)


class Record:
    """An object with named values: a class, or the parameters of a function.

    :param fields: in order. kind: what is made of the values; ``None`` leaves them a dictionary.
    :raises TypeError: as :func:`shape_of`.
    """

    def __init__(self, fields: Sequence[Field], kind: type | None = None, inside: tuple[type, ...] = ()) -> None:
        self._fields = {each.name: (each, _shape(each.hint, inside)) for each in fields}
        self._kind = kind

    def schema(self) -> dict[str, object]:
        """Return the JSON schema; properties stand in the order of the fields."""
        properties: dict[str, object] = {}
        for name, (field, shape) in self._fields.items():
            described = shape.schema()
            if field.description:
                described["description"] = field.description
            default = field.default.value if isinstance(field.default, enum.Enum) else field.default
            if field.has_default and type(default) in _WORDS:
                described["default"] = default
            properties[name] = described
        required = [name for name, (field, _) in self._fields.items() if not field.has_default]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def value(self, raw: object, where: str, faults: list[str]) -> object:
        """Return the object of the class."""
        before = len(faults)
        values = self.values(raw, where, faults)
        if self._kind is None or len(faults) > before:
            return values
        try:
            return self._kind(**values)
        except (TypeError, ValueError) as error:
            faults.append(f"{where or 'the arguments'}: {error}")
            return None

    def values(self, raw: object, where: str, faults: list[str]) -> dict[str, object]:
        """Return the values by name, without those that have a default and were left out or given as ``null``."""
        if not isinstance(raw, Mapping):
            _fault(faults, where, raw, "an object")
            return {}
        found: dict[str, object] = {}
        for name, one in raw.items():
            field, shape = self._fields.get(name, (None, None))
            if field is None or shape is None:
                known = ", ".join(self._fields) or "none"
                faults.append(f"{_inside(where, str(name))} is unknown; there are: {known}")
            elif one is not None or not field.has_default or _takes_null(shape):
                found[name] = shape.value(one, _inside(where, name), faults)
        missing = [name for name, (field, _) in self._fields.items() if not field.has_default and name not in raw]
        faults += [f"{_inside(where, name)} is missing" for name in missing]
        return found


def _takes_null(shape: Shape) -> bool:
    faults: list[str] = []
    shape.value(None, "", faults)
    return not faults


def _number(raw: object) -> int | float | None:
    """Return the number that JSON, or text inside JSON, says; neither *infinite* nor *not a number* is one."""
    if isinstance(raw, str):
        try:
            raw = int(raw) if raw.strip().lstrip("-").isdecimal() else float(raw)
        except ValueError:
            return None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return raw if isinstance(raw, int) or raw - raw == 0 else None


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _fault(faults: list[str], where: str, raw: object, wanted: str) -> object:
    """Add a complaint; returns the value of what does not fit: nothing."""
    faults.append(f"{where or 'the arguments'}: {_shown(raw)} is not {wanted}")
    return None


def _shown(value: object) -> str:
    """Return a value for people, shortened."""
    text = value.__name__ if isinstance(value, type) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
