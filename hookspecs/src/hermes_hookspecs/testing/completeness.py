"""A suite that was thinned out is no suite: what a subclass takes away must say why."""

from __future__ import annotations

import pytest

__all__ = ["CompleteSuite"]


class CompleteSuite:
    """Mixin of every suite of the kit: fails when one of its tests is overridden or removed without a reason.

    A gap is declared by overriding the test under ``@pytest.mark.xfail(strict=True, reason=...)`` or
    ``@pytest.mark.skip(reason=...)``. Fixtures and capability attributes are made to be overridden.
    """

    def test_kit_is_complete(self) -> None:
        """Every test of the kit runs, or says why it does not."""
        silent = [name for name, test in sorted(_tests_of_kit(type(self)).items()) if _is_silenced(self, name, test)]

        assert silent == [], f"overridden or removed without xfail or skip and a reason: {', '.join(silent)}"


def _tests_of_kit(suite: type) -> dict[str, object]:
    """Return the tests that the kit's own classes among the bases of ``suite`` define, the nearest definition each."""
    tests: dict[str, object] = {}
    for base in reversed(suite.__mro__):
        if base.__module__.startswith("hermes_hookspecs.testing."):
            tests |= {name: test for name, test in vars(base).items() if name.startswith("test_")}
    return tests


def _is_silenced(suite: CompleteSuite, name: str, test: object) -> bool:
    found: object = getattr(type(suite), name, None)
    if found is test:
        return False
    marks: list[pytest.Mark] = getattr(found, "pytestmark", [])
    return not any(mark.name in {"skip", "xfail"} and mark.kwargs.get("reason") for mark in marks)
