"""The generated methods are those of the catalogue, and each sends what HTTP takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, TypeAlias

import pytest

from fencepost.verbs.catalogue import CATALOGUE, Method, Shape, Verb
from fencepost.verbs.methods import AsyncVerbs, Verbs
from fencepost.verbs.remote import Refused, Remote
from fencepost.verbs.remote_async import AsyncRemote
from tests.harness.fake_control_api import FakeControlApi, refusal
from tools.generate_verbs import TARGET, render

Given: TypeAlias = dict[str, Any]

PLACE: Final[Given] = {
    "topic": "t",
    "partition": 2,
    "broker": 3,
    "group": "g",
    "transactional_id": "x",
    "member": "m",
    "id": 4,
}
GIVEN: Final[dict[str, Given]] = {
    "create_topic": {
        "name": "t",
        "assignments": [[1, 2], [2, 1]],
        "configs": {"retention.ms": "7"},
    },
    "produce_records": {
        "records": ["a", {"key": "k", "headers": [["h", "1"], ["h", None]]}],
        "partition": 1,
        "acks": "1",
        "timeout_ms": 30,
    },
    "read_records": {"from_offset": 3, "to": 7, "limit": 2, "encoding": "base64"},
    "expect_records": {"key": "k", "value": None, "headers": {"h": "1"}, "count": 2},
    "elect": {"leader": 2, "unclean": True},
    "hold": {"at": 7, "leave_isr": True},
    "step": {"fetches": 3},
    "wait_for_group": {"state": "Empty", "members": 1, "timeout_ms": 30},
    "move_coordinator": {"broker": 2},
    "set_offsets": {"offsets": [{"topic": "t", "partition": 0, "offset": 3}, "t:1:4"]},
    "reset": {"topics": [{"name": "t", "partitions": 3}, "u:1:2"]},
    "delete_offsets": {"topics": ["t"]},
    "abort_hanging_transaction": {"topic": "t", "partition": 1, "producer_id": 1000},
    "hold_marker": {"topic": "t", "partition": 1},
    "release_marker": {"topic": "t", "partition": 1},
    "kill_broker": {"fence": "never"},
    "isolate_broker": {"origin": [1], "fence": "timeout"},
    "add_fault": {
        "api": "Produce",
        "versions": "7-",
        "broker": 1,
        "client_id": "c",
        "topic": "t",
        "partition": 0,
        "transactional_id": "x",
        "count": None,
        "after": 2,
        "probability": 0.5,
        "action": {"disconnect": "after"},
    },
    "wait_for_fault": {"hits": 2, "timeout_ms": 30},
    "tier": {"action": "delete-local"},
    "add_tier_fault": {"operation": "fetch", "error": True, "count": None},
    "advance_clock": {"ms": 5},
    "events": {"since": 3, "follow": False},
    "timeline": {"since": 3, "requests_since": 4, "limit": 5},
    "trace": {"api": "Fetch", "broker": 1, "source": "brokers", "since": 3, "limit": 7},
    "verify": {"api": "Fetch", "count": {"at_least": 2}, "topic": "t", "since": 3},
    "wait_for_trace": {"topic": "t", "client_id": "c", "timeout_ms": 30},
}
"""For each verb that takes something, what is not the default."""
JSON_NAMES: Final = {"origin": "from", "from_offset": "from"}

each_verb = pytest.mark.parametrize("verb", CATALOGUE, ids=[verb.name for verb in CATALOGUE])


def test_the_module_is_as_generated() -> None:
    """``python -m tools.generate_verbs`` writes it."""
    assert TARGET.read_text() == render()


def test_every_verb_that_takes_something_is_given_something() -> None:
    assert GIVEN.keys() == {verb.name for verb in CATALOGUE if verb.request_model is not None}


def test_both_classes_have_every_verb_and_the_same_parameters() -> None:
    for verb in CATALOGUE:
        plain, waited = getattr(Verbs, verb.name), getattr(AsyncVerbs, verb.name)
        assert inspect.signature(plain).parameters == inspect.signature(waited).parameters
        assert plain.__doc__ == waited.__doc__ == verb.summary
        assert inspect.iscoroutinefunction(waited) is (verb.shape is not Shape.STREAM)


@pytest.fixture
def refusing(stub: FakeControlApi) -> FakeControlApi:
    """What is sent is all that matters here."""
    stub.will(refusal(400, "NEVER_MIND", "never mind"))
    return stub


@pytest.fixture
def remote(refusing: FakeControlApi) -> Iterator[Remote]:
    with closing(Remote(refusing.url)) as made:
        yield made


@each_verb
def test_a_method_sends_all_that_it_is_given(
    refusing: FakeControlApi, remote: Remote, verb: Verb
) -> None:
    with pytest.raises(Refused, match="NEVER_MIND"):
        drain(getattr(Verbs(remote), verb.name)(**_arguments(verb)))
    _check(refusing, verb)


@each_verb
async def test_an_async_method_sends_the_same(refusing: FakeControlApi, verb: Verb) -> None:
    with closing(AsyncRemote(refusing.url)) as remote:
        asked = getattr(AsyncVerbs(remote), verb.name)(**_arguments(verb))
        with pytest.raises(Refused, match="NEVER_MIND"):
            await (anext(asked) if verb.shape is Shape.STREAM else asked)
    _check(refusing, verb)


def drain(answer: object) -> None:
    """A stream asks only when it is read."""
    if inspect.isgenerator(answer):
        next(answer)


def _arguments(verb: Verb) -> Given:
    return {name: PLACE[name] for name in verb.path_parameters} | GIVEN.get(verb.name, {})


def _check(stub: FakeControlApi, verb: Verb) -> None:
    (asked,) = stub.asked
    given = {JSON_NAMES.get(name, name): each for name, each in GIVEN.get(verb.name, {}).items()}
    query = "&".join(f"{name}={each}" for name, each in given.items())
    path = verb.path.format_map(PLACE)
    assert asked.method == verb.method
    if verb.method is Method.GET:
        target, _, sent = asked.target.partition("?")
        assert (target, sorted(sent.split("&"))) == (path, sorted(query.split("&")))
        assert asked.content == b""
    else:
        assert asked.target == path
        assert (asked.body if asked.content else {}) == given
