"""Each fault as real clients meet it: they recover, or say so, as they do with a real Kafka.

Every case of `tests.clients.faults` is played on fencepost, and on a real Kafka behind a fault
proxy: by confluent-kafka, the Java client and franz-go at the same time, each with a topic, a
client id and so a fault of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.verbs.fault_bodies import FaultBody
from tests.clients.faults import CASES, CLIENTS, Case, Told
from tests.clients.grounds import Ground, Stand, append, stored
from tests.harness.served_cluster import unique


@pytest.mark.timeout(600)  # the first builds a Go program and fetches jars
@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
@pytest.mark.parametrize("where", ["fencepost", "kafka"])
def test_clients_meet_a_fault(stand: Callable[[str], Stand], where: str, case: Case) -> None:
    here = stand(where)
    ground, cluster = here.ground, here.ground.cluster
    verb, *words = case.does.split()
    topics = {client: _topic(ground, verb) for client in CLIENTS}
    client_ids = {client: unique(client) for client in CLIENTS}
    hits = {
        client: ground.set(FaultBody.model_validate({**case.fault, "client_id": client_id}))
        for client, client_id in client_ids.items()
    }
    lines = {
        each: " ".join([verb, client_ids[each], topics[each], words[0], *_group(verb), *words[1:]])
        for each in CLIENTS
    }
    here.say(lines)
    assert here.hear() == _of_each(case.told)
    if verb == "produce" and "delay" in case.fault["action"]:
        for client_id in client_ids.values():
            ground.settle(client_id)
    assert {each: stored(cluster, topics[each]) for each in CLIENTS} == _of_each(case.stored)
    hit = {client: each() for client, each in hits.items()}
    assert min(hit.values()) > 0
    assert case.hits is None or hit == dict.fromkeys(CLIENTS, case.hits)


def _group(verb: str) -> list[str]:
    """One of its own, for a member."""
    return [unique("group")] if verb == "member" else []


def _of_each(told: Told) -> dict[str, str]:
    return dict.fromkeys(CLIENTS, told) if isinstance(told, str) else dict(told)


def _topic(ground: Ground, verb: str) -> str:
    """A new topic, with two batches for those who read."""
    topic = ground.cluster.create_topic("fault", replication_factor=ground.replication_factor)
    if verb != "produce":
        append(ground.cluster, topic, "a")
        append(ground.cluster, topic, "b")
    return topic
