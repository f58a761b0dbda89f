"""The built-in key builder keeps every rule of the key suite, and the suite catches builders that do not."""

from __future__ import annotations

import attrs
import pytest

from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.testing.keys import KeyBuilderSuite

key = pytest.importorskip("hermes_core.routing.key", reason="the built-in key builder is the core's")
Builder = key.LabelledKeyBuilder


class TestBuiltInBuilder(KeyBuilderSuite):
    @pytest.fixture
    def builder(self):
        return Builder()


def _with(build=None, parts=None):
    """Return a builder that changes the source before its key is made, or the parts behind."""

    class Mutant(Builder):
        def build(self, source, policy):
            return super().build(source if build is None else build(source), policy)

        def parts(self, source, policy):
            found = super().parts(source, policy)
            return found if parts is None else parts(found)

    return Mutant


def _text(change):
    def build(source):
        return attrs.evolve(source, chat_id=None if source.chat_id is None else change(source.chat_id))

    return build


class OnePolicy(Builder):
    """Threads follow the setting of groups."""

    def parts(self, source, policy):
        one = policy.group_sessions_per_user
        return super().parts(source, KeyPolicy(group_sessions_per_user=one, thread_sessions_per_user=one))


class NotEncoded(Builder):
    def build(self, source, policy):
        return super().build(source, policy).replace("%3A", ":").replace("%3D", "=")


class Shortened(Builder):
    def build(self, source, policy):
        return super().build(source, policy)[:60]


MUTANTS = {
    "case folded": _with(_text(str.lower)),
    "blanks stripped": _with(_text(lambda text: text.strip() or "x")),
    "not encoded": NotEncoded,
    "cut instead of hashed": Shortened,
    "account forgotten": _with(lambda source: attrs.evolve(source, account_id="default")),
    "scope forgotten": _with(lambda source: attrs.evolve(source, scope_id=None)),
    "thread forgotten": _with(lambda source: attrs.evolve(source, thread_id=None, prospective_thread_id=None)),
    "thread to come ignored": _with(lambda source: attrs.evolve(source, prospective_thread_id=None)),
    "plain id preferred": _with(lambda source: attrs.evolve(source, user_id_alt=None)),
    "threads follow groups": OnePolicy,
    "never shared": _with(parts=lambda parts: attrs.evolve(parts, shared=False)),
    "no older form": type("NoOlderForm", (Builder,), {"alternatives": lambda self, source, policy: ()}),
}

GENERATED = """
import pytest
import planted
from hermes_hookspecs.testing.keys import KeyBuilderSuite

class TestMutant(KeyBuilderSuite):
    @pytest.fixture
    def builder(self):
        return planted.mutant()
"""


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_the_suite_catches(run_suite, mutant):
    fates = run_suite(GENERATED, mutant=mutant)

    assert fates.failed, f"{len(fates.passed)} tests passed"
