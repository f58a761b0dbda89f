"""Which older key a message may take over: plain values, no store."""

from __future__ import annotations

import attrs
import pytest

from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.operations import Claim
from hermes_hookspecs.source import KeyPolicy
from hermes_slack_scope.claims import claims_of
from hermes_slack_scope.testing import old_key, slack_source

POLICY = KeyPolicy()


class Keys:
    """Keys of this grammar, with the workspace where there is one."""

    def build(self, source, policy):
        key = old_key(source)
        return key if source.scope_id is None else f"{key}:scope={source.scope_id}"


class Scopeless(Keys):
    def build(self, source, policy):
        return old_key(source)


class Strict(Keys):
    def build(self, source, policy):
        if source.scope_id is None:
            raise KeyBuildError("no workspace, no key")
        return super().build(source, policy)


@pytest.mark.parametrize(("person", "asked_for"), [("U5", "U5"), ("", "")])
def test_a_direct_message_asks_for_its_own_workspaces_route_and_then_for_its_persons(person, asked_for):
    source = slack_source("T1", user_id=person)
    older = old_key(source)

    assert claims_of(source, POLICY, Keys()) == (
        Claim(key=older, scope_id="T1"),
        Claim(key=older, user_id=asked_for),
    )


@pytest.mark.parametrize("kind", ["channel", "group", "thread", "mpim", ""])
def test_every_other_place_asks_for_its_own_workspaces_route_alone(kind):
    source = slack_source("T1", "C9", kind)

    assert claims_of(source, POLICY, Keys()) == (Claim(key=old_key(source), scope_id="T1"),)


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (attrs.evolve(slack_source("T1"), platform="feishu"), Keys()),
        (slack_source(None), Keys()),
        (slack_source("T1"), Scopeless()),
        (slack_source("T1"), Strict()),
    ],
    ids=["another platform", "no workspace", "keys without workspaces", "no key without a workspace"],
)
def test_nothing_else_asks_for_anything(source, keys):
    assert claims_of(source, POLICY, keys) == ()
