"""What a verb takes is checked to the letter, and what is wrong is said in one line."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from fencepost.verbs.bodies import (
    Body,
    ElectBody,
    HitsFilter,
    HoldBody,
    IsolateBody,
    KillBody,
    NewTopicBody,
    StepBody,
    TierBody,
    TierFaultBody,
    TraceQuery,
    TraceWait,
)
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.fault_bodies import FaultBody
from fencepost.verbs.problems import InvalidModel
from fencepost.verbs.remote import Refused, validate_body

FAULT: Final[dict[str, Any]] = {"api": "Produce", "action": {"drop": True}}


def wrong(model: type[Body], given: object) -> str:
    """The one line about it."""
    with pytest.raises(InvalidModel) as raised:
        model.model_validate_json(json.dumps(given))
    line = str(raised.value)
    assert len(line.splitlines()) == 1
    return line


@pytest.mark.parametrize(
    ("action", "read"),
    [
        ({"error": "NOT_LEADER_OR_FOLLOWER"}, {"error": "NOT_LEADER_OR_FOLLOWER"}),
        ({"error": 6}, {"error": 6}),
        ({"delay": 0}, {"delay": 0}),
        ({"disconnect": "before"}, {"disconnect": "before"}),
        ({"disconnect": "after"}, {"disconnect": "after"}),
        ({"throttle": 5}, {"throttle": 5}),
        ({"drop": True}, {"drop": True}),
        ("drop", {"drop": True}),
        ({"corrupt": True}, {"corrupt": True}),
        ("corrupt", {"corrupt": True}),
        ({"stale_metadata": 0}, {"stale_metadata": 0}),
        ({"bandwidth": 1}, {"bandwidth": 1}),
        ({"pieces": 1}, {"pieces": 1}),
        ("silent", {"silent": True}),
        ("refuse", {"refuse": True}),
        ("observe", {"observe": True}),
        ("pass", {"pass": True}),
    ],
)
def test_an_action_is_one_of_these(action: object, read: dict[str, object]) -> None:
    body = FaultBody.model_validate({**FAULT, "action": action})
    assert body.action.model_dump(exclude_unset=True) == read


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"drop": True, "delay": 5},
        {"drop": None},
        {"drop": False},
        {"delay": -1},
        {"delay": "5"},
        {"delay": 5.0},
        {"disconnect": "now"},
        {"bandwidth": 0},
        {"pieces": 0},
        {"explode": True},
        "explode",
        7,
    ],
)
def test_no_other_action(action: object) -> None:
    assert wrong(FaultBody, {**FAULT, "action": action}).startswith("action")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "action: name exactly one action of error, delay, disconnect, "),
        (
            {"explode": True},
            "action: there is no field 'explode'; there are error, delay, disconnect, ",
        ),
        ("explode", "action: there is no action 'explode'; there are error, delay, "),
        ({"delay": -1}, "action.delay: input should be greater than or equal to 0"),
        ({"disconnect": "now"}, "action.disconnect: input should be 'before' or 'after'"),
    ],
)
def test_what_is_wrong_with_an_action_is_said(given: object, said: str) -> None:
    assert wrong(FaultBody, {**FAULT, "action": given}).startswith(said)


def test_a_fault_is_one_hit_unless_it_says_otherwise() -> None:
    body = FaultBody.model_validate(FAULT)
    assert (body.count, body.after, body.probability) == (1, 0, 1)
    assert FaultBody.model_validate({**FAULT, "count": None}).count is None
    assert FaultBody.model_validate({**FAULT, "probability": 1}).probability == 1


@pytest.mark.parametrize(
    "part",
    [
        {"count": 0},
        {"count": True},
        {"after": -1},
        {"probability": 0},
        {"probability": 1.1},
        {"partition": 0},
        {"topic": "t", "partition": -1},
        {"broker": "1"},
        {"client_id": 1},
        {"when": "now"},
        {"api": None},
        {"record": {}},
        {"record": {"key": 1}},
        {"record": {"header": ["name"]}},
        {"record": {"topic": "t"}},
        {"action": None},
        {"sequence": ["pass"]},
    ],
)
def test_a_fault_that_fits_nothing_is_wrong(part: dict[str, object]) -> None:
    assert wrong(FaultBody, {**FAULT, **part})


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"api": {}}, "api: input should be Kafka's name of an API, its key, an array of these, "),
        ({"record": {}}, "record: name a key, a value or a header"),
        ({"action": None}, "name an action, or a sequence of several"),
        ({"sequence": ["pass"]}, "name an action, or a sequence of several"),
        ({"sequence": ["pass", "delay"]}, "sequence[1]: delay needs a value"),
    ],
)
def test_what_is_wrong_with_a_fault_is_said(part: dict[str, object], said: str) -> None:
    assert wrong(FaultBody, {**FAULT, **part}).startswith(said)


def test_a_partition_needs_its_topic() -> None:
    assert wrong(FaultBody, {**FAULT, "partition": 0}) == "partition: name its topic too"


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (NewTopicBody, {}, "name: field required"),
        (NewTopicBody, {"name": 1}, "name: input should be a valid string"),
        (
            NewTopicBody,
            {"name": "t", "assignments": [[1, "2"]]},
            "assignments[0][1]: input should be a valid integer",
        ),
        (
            NewTopicBody,
            {"name": "t", "assignments": 1},
            "assignments: input should be a valid array",
        ),
        (
            NewTopicBody,
            {"name": "t", "configs": {"a": 1}},
            "configs.a: input should be a valid string",
        ),
        (
            ElectBody,
            {"leader": 1, "clean": True},
            "there is no field 'clean'; there are leader, unclean",
        ),
        (ElectBody, {"leader": True}, "leader: input should be a valid integer"),
        (HoldBody, {"at": -1}, "at: input should be greater than or equal to 0"),
        (StepBody, {"fetches": 0}, "fetches: input should be greater than or equal to 1"),
        (KillBody, {"fence": "later"}, "fence: input should be 'now', 'timeout' or 'never'"),
        (IsolateBody, {}, "from: field required"),
        (
            IsolateBody,
            {"from": []},
            'from: input should be "controller" or an array of broker ids',
        ),
        (
            IsolateBody,
            {"from": 1},
            'from: input should be "controller" or an array of broker ids',
        ),
        (
            ElectBody,
            {"leader": "1", "unclean": 1},
            "leader: input should be a valid integer; unclean: input should be a valid boolean",
        ),
        (ElectBody, [], "input should be a valid object or instance of ElectBody"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(model: type[Body], given: object, said: str) -> None:
    assert wrong(model, given) == said


@pytest.mark.parametrize("model", [TraceQuery, TraceWait, HitsFilter])
def test_a_query_is_text(model: type[Body]) -> None:
    texts = {"limit": "7", "timeout_ms": "7", "hits": "7", "since": "7", "broker": "7"}
    given = {name: text for name, text in texts.items() if name in model.model_fields}
    made = model.model_validate(given).model_dump(exclude_unset=True)
    assert made == dict.fromkeys(given, 7)
    assert wrong(model, dict.fromkeys(given, "x")).count("valid integer") == len(given)
    assert "there is no field 'nothing'" in wrong(model, {"nothing": "x"})


def test_a_verb_is_checked_as_the_cluster_would() -> None:
    assert validate_body(VERBS["roll"], {}) is None
    assert validate_body(VERBS["step"], {"fetches": 2}) == StepBody(fetches=2)
    with pytest.raises(Refused) as refused:
        validate_body(VERBS["step"], {"fetches": 0})
    assert refused.value.code == "INVALID_REQUEST"
    assert refused.value.message == "fetches: input should be greater than or equal to 1"


# -- the remote tier ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"operation": "upload", "error": "no space left"},
        {"operation": "fetch", "error": True},
        {"operation": "delete", "delay_ms": 0},
        {"operation": "fetch", "delay_ms": 5, "count": None},
        {"operation": "list", "error": "too late", "delay_ms": 5},
    ],
)
def test_a_tier_fault_is_an_error_or_a_delay_or_both(given: dict[str, Any]) -> None:
    assert TierFaultBody.model_validate(given).model_dump(exclude_unset=True) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "operation: field required"),
        ({"operation": "look", "error": "x"}, "operation: input should be 'upload', 'fetch', 'del"),
        ({"operation": "upload"}, "name error or delay_ms"),
        ({"operation": "upload", "error": ""}, "error: say something, or true"),
        ({"operation": "upload", "delay_ms": -1}, "delay_ms: input should be greater than or"),
        ({"operation": "upload", "delay_ms": 1, "count": 0}, "count: input should be greater"),
    ],
)
def test_no_other_tier_fault(given: dict[str, Any], said: str) -> None:
    assert wrong(TierFaultBody, given).startswith(said)


def test_a_tier_does_what_it_knows() -> None:
    assert wrong(TierBody, {}) == "action: field required"
    assert wrong(TierBody, {"action": "up"}).startswith("action: input should be 'upload', 'delete")
