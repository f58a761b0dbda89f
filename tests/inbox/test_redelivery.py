"""What a platform delivers again is known by its ids, and nothing else is."""

from __future__ import annotations

import pytest

from hermes_hookspecs.source import Entrance

FEISHU = Entrance("feishu")


def test_any_known_identity_makes_a_message_a_duplicate(door):
    door.accept(door.event("hello", "event:1", "message:1"))

    results = door.accept(
        door.event("hello", "event:2", "message:1"), door.event("hello", "event:1"), door.event("new", "event:3")
    )

    assert [(one.id, one.duplicate) for one in results] == [(1, True), (1, True), (2, False)]
    assert door.work() == ["echo 1: hello", "echo 2: new"]


def test_a_message_that_stands_twice_in_a_batch_is_taken_once(door):
    first, second = door.accept(door.event("hello", "m1"), door.event("hello", "m1"))

    assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_redelivery_after_a_restart_is_a_duplicate(open_door):
    door = open_door()
    door.accept(door.event("hello", "m1"))
    assert door.work() == ["echo 1: hello"]
    door.app.close()
    again = open_door()

    (result,) = again.accept(again.event("hello", "m1"))

    assert (result.duplicate, again.work()) == (True, [])


def test_two_of_our_bots_that_receive_one_message_both_answer_it(door):
    second = Entrance("feishu", "second")
    group = {"chat_type": "group"}
    results = door.accept(
        door.event("both of you!", "om_1", source=door.source(**group)),
        door.event("both of you!", "om_1", source=door.source(account_id="second", **group)),
    )

    assert [one.duplicate for one in results] == [False, False]
    assert door.work("echo", FEISHU, second) == ["echo 1: both of you!"] * 2
    (again,) = door.accept(door.event("both of you!", "om_1", source=door.source(account_id="second", **group)))
    assert (again.id, again.duplicate) == (results[1].id, True)


def test_two_platforms_may_count_alike(door):
    slack = door.source("C1", platform="slack", scope_id="T1")

    results = door.accept(door.event("one", "7"), door.event("other", "7", source=slack))

    assert [one.duplicate for one in results] == [False, False]


def test_an_empty_id_tells_nothing(door):
    results = door.accept(door.event("one", "", "m1"), door.event("other", ""))

    assert [one.duplicate for one in results] == [False, False]
    assert door.item(2).identities == ()


def test_ids_that_no_store_can_hold_stay_apart(door):
    ids = ("\ud800", "\ud801", "%ED%A0%80", "\ufffd")

    results = door.accept(*(door.event(identity, identity) for identity in ids))

    assert [one.duplicate for one in results] == [False] * 4
    assert door.accept(door.event("again", "\ud801"))[0].id == results[1].id


def test_what_a_platform_calls_a_message_by_later_is_learned(door):
    door.accept(door.event("one", "m1"))
    door.accept(door.event("one", "m1", "m1-late"))

    assert door.accept(door.event("one", "m1-late"))[0].duplicate


def test_the_accounts_of_two_bots_cannot_be_mixed_up_by_what_stands_in_an_id(door):
    one = door.event("one", "b:om_1", source=door.source(account_id="a"))
    other = door.event("other", "om_1", source=door.source(account_id="a:b"))

    assert [result.duplicate for result in door.accept(one, other)] == [False, False]
