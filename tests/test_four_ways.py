"""Every verb and every kind of fault, reached by HTTP, the command line, a scenario and Python.

Whichever way is taken, the answer is the same, the cluster is the same afterwards, and so is what a
Kafka client then meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import httpx
import pytest

from fencepost.testing import Cluster
from fencepost.verbs.bodies import TierFaultBody
from fencepost.verbs.catalogue import CATALOGUE, VERBS
from fencepost.verbs.fault_bodies import FaultAction
from tests.four_ways.meeting import TOPIC, Json
from tests.four_ways.row import Given, Row
from tests.four_ways.rows import ROWS
from tests.four_ways.rows_faults import FAULTS
from tests.four_ways.rows_tier import TIER
from tests.four_ways.ways import WAYS, Cast, RefusedSo
from tests.harness.control_client import covers

VOLATILE: Final = frozenset(
    "answered_ms connection correlation_id elapsed_us member_id newest now_ms number producer_id"
    " start_ms time_ms topic_id".split()
)
"""What differs each time that the same is done."""


@pytest.fixture
def cast(fencepost: Cluster, tmp_path: Path) -> Iterator[Cast]:
    with httpx.Client(base_url=fencepost.control, trust_env=False, timeout=30) as http:
        yield Cast(cluster=fencepost, http=http, folder=tmp_path)


def test_every_verb_has_a_row() -> None:
    assert {row.verb for row in ROWS} == VERBS.keys()
    commands = [row.command for row in ROWS]
    for verb in CATALOGUE:
        for words in verb.commands:
            assert [command for command in commands if f"{command} ".startswith(f"{words} ")]


def test_every_kind_of_fault_and_every_selector_has_a_row() -> None:
    set_by = [row.given for row in FAULTS if row.verb == "add_fault" and row.refused is None]
    actions = [given["action"] for given in set_by if isinstance(given.get("action"), dict)]
    kinds = {kind for action in actions for kind in action}
    assert kinds == FaultAction.model_fields.keys()
    takes = VERBS["add_fault"].request_model
    assert takes is not None
    assert {name for given in set_by for name in given} == takes.model_fields.keys()


def test_every_operation_that_a_tier_fault_hits_and_all_it_does_has_a_row() -> None:
    set_by = [row.given for row in TIER if row.verb == "add_tier_fault"]
    operations = get_args(TierFaultBody.model_fields["operation"].kind)
    assert {given["operation"] for given in set_by} == set(operations)
    assert {name for given in set_by for name in given} == TierFaultBody.model_fields.keys()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=row.name,
            marks=pytest.mark.fencepost(brokers=3, clock=row.clock, configs=dict(row.configs)),
        )
        for row in ROWS
    ],
)
def test_the_same_in_every_way(cast: Cast, row: Row) -> None:
    came = {name: _came_of(cast, row, name) for name in WAYS}
    expected = {"answer": row.answers, "seen": row.changes, "met": row.told, "then": row.then}
    assert covers(came["HTTP"], {part: each for part, each in expected.items() if each})
    for name in WAYS:
        assert came[name] == came["HTTP"], name


def _came_of(cast: Cast, row: Row, way: str) -> Json:
    """All that can be seen of a row that is done in one way."""
    now_ms = cast.ask("cluster", {})["clock"]["now_ms"]
    try:
        answer, refused = WAYS[way](cast, row), None
    except RefusedSo as error:
        answer, refused = None, str(error)
    assert refused == row.refused, way
    then = None if row.after is None else _asked(cast, *row.after)
    seen = _seen(cast)
    if row.clock == "manual":
        seen["elapsed_ms"] = seen["cluster"]["clock"]["now_ms"] - now_ms
    met: Json = None
    if row.meets is not None:
        met = row.meets(cast.broker)
        met["log_end"] = cast.ask("partition", {"topic": TOPIC, "partition": 0})["high_watermark"]
        met["hits"] = sum(each["hits"] for each in cast.ask("faults", {}))
    return {"answer": settled(answer), "seen": settled(seen), "met": met, "then": settled(then)}


def _asked(cast: Cast, name: str, given: Given) -> Json:
    """What a verb answers, or by which code it is refused."""
    try:
        return cast.ask(name, given)
    except RefusedSo as error:
        return str(error)


def _seen(cast: Cast) -> dict[str, Json]:
    topics = cast.ask("topics", {})
    partition: Json = None
    if TOPIC in [each["name"] for each in topics]:
        partition = cast.ask("partition", {"topic": TOPIC, "partition": 0})
    return {
        "cluster": cast.ask("cluster", {}),
        "topics": topics,
        "partition": partition,
        "faults": cast.ask("faults", {}),
        "tier_faults": cast.ask("tier_faults", {}),
    }


def settled(found: Json) -> Json:
    """Without what differs each time."""
    if isinstance(found, list):
        return [settled(each) for each in found]
    if not isinstance(found, dict):
        return found
    changing = VOLATILE | ({"id"} if {"hits", "end_offset"} & found.keys() else set())
    changing |= {"epoch"} if "isolated_from" in found else set()  # of a registration
    return {name: settled(each) for name, each in found.items() if name not in changing}
