"""A scenario with the same seed: the same happens in every run, from a cluster's start on.

A seed must repeat its run in another process, so runs alternate between two that order their sets
differently. FENCEPOST_SCENARIO_RUNS says how many there are of each scenario; without it there are
two of a few.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from fencepost.scenario.formatting import describe_failure
from fencepost.scenario.loader import read, read_text, shipped
from fencepost.scenario.player import play
from fencepost.scenario.runner import DEFAULT_SEED
from tests.scenario.fresh_clusters import FreshClusters, fresh_clusters
from tests.scenario.scenarios import Told, documented

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fencepost.scenario.model import Scenario

DOCUMENTED: Final = "docs/scenarios.md"
SAMPLE: Final = (
    DOCUMENTED,
    "coordinator-moves",  # groups, with members that live on
    "kip-1023-worked-example",  # a remote tier, and a manual clock
    "leader-change-during-produce",  # a producer that goes on meanwhile
    "rebalance-storm",  # groups, and a manual clock
    "slow-broker",  # faults, and a manual clock
)
_ASKED: Final = os.environ.get("FENCEPOST_SCENARIO_RUNS")
RUNS: Final = max(2, int(_ASKED or 0))
NAMES: Final = (DOCUMENTED, *shipped()) if _ASKED else SAMPLE
MOST: Final = 4096
"""Exchanges that one request lists."""
Event = dict[str, Any]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[FreshClusters]]:
    logs = tmp_path_factory.mktemp("clusters")
    with ExitStack() as running:
        yield [running.enter_context(fresh_clusters(logs / f"{at}.log", at)) for at in (1, 2)]


def scenario_of(name: str) -> Scenario:
    if name == DOCUMENTED:
        return read_text(documented("<!-- run: scenario -->"), file=DOCUMENTED, name="mine")
    return read(name)


@pytest.mark.timeout(60 + 20 * RUNS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_makes_the_same_events(name: str, clusters: Sequence[FreshClusters]) -> None:
    scenario = scenario_of(name)
    first, *others = (run_of(scenario, clusters[at % len(clusters)]) for at in range(RUNS))
    for other in others:
        assert by_subject(other) == by_subject(first)
        if scenario.cluster.clock == "manual":
            assert other["events"] == first["events"]


def run_of(scenario: Scenario, clusters: FreshClusters) -> dict[str, Any]:
    """The events of a run that passes, and what its groups went through."""
    options = [*scenario.cluster.arguments(), f"--seed={DEFAULT_SEED}"]
    with clusters.serving(options) as control, httpx.Client(base_url=control) as api:
        outcome = asyncio.run(play(scenario, control, Told(), reset=True))
        assert outcome.passed, "\n".join(describe_failure(outcome))
        lines = api.get("/v1/events", params={"since": 0, "follow": False}).text.splitlines()
        exchanges = api.get("/v1/trace", params={"source": "clients", "limit": MOST}).json()
    return {"events": since_the_start(map(json.loads, lines)), "groups": group_changes(exchanges)}


def since_the_start(events: Iterator[Event]) -> list[Event]:
    """Events with the time since the first one."""
    found = list(events)
    return [{**each, "time_ms": each["time_ms"] - found[0]["time_ms"]} for each in found]


def by_subject(run: Mapping[str, Any]) -> dict[str, list[object]]:
    """What happened to each partition, broker and group, in order, without times and numbers."""
    found: dict[str, list[object]] = defaultdict(list)
    for event in run["events"]:
        told = {name: event[name] for name in ("kind", "topic", "partition", "broker", "details")}
        for subject in ("topic", "broker"):
            if event[subject] is not None:
                found[f"{subject} {event[subject]} {event['partition']}"].append(told)
        if event["topic"] is None and event["broker"] is None:
            found["cluster"].append(told)
    return {**found, **run["groups"]}


def group_changes(exchanges: Sequence[Mapping[str, Any]]) -> dict[str, list[object]]:
    """The generations of each group with its leader, and the offsets that were committed."""
    found: dict[str, list[object]] = defaultdict(list)
    for each in exchanges:
        request, response = each["request"], each["response"]
        if each["api"] == "OffsetCommit":
            found[f"group {request['group_id']}"].append([request["topics"], response["topics"]])
        elif each["api"] == "JoinGroup" and response and response["error_code"] == 0:
            change = [response["generation_id"], response["leader"], response["member_id"]]
            found[f"group {request['group_id']}"].append(change)
    return {group: [json.dumps(each, sort_keys=True) for each in of] for group, of in found.items()}
