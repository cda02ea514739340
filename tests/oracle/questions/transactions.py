"""Transactions of three brokers: every API of them, at every version.

The conversations are those of ``tests.broker.transactions``, which one broker has as well. Here
each request goes to the broker that it is for: a coordinator, or the leader of a partition.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Final

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.create_topics import CreateTopicsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.groups.talk import TOPICS, Message
from tests.broker.transactions.conversations import ALL
from tests.broker.transactions.talk import Talk
from tests.harness.driver import NEWEST
from tests.harness.served_cluster import Cluster
from tests.harness.typed_client import BlockingClient
from tests.harness.typed_requests import creatable, list_offsets_request
from tests.harness.wait import wait_until
from tests.oracle.asking import Row
from tests.oracle.steering import Steering

LEFT_OUT: Final[Mapping[str, str]] = {
    "last_epochs": "it takes 65,000 requests to get there; one broker was asked",
}
"""Conversations that three brokers do not have, each with its reason."""
_LEADER: Final = 1
"""Of all partitions but those of Kafka's own topics."""
_GROUPS, _TRANSACTIONS = 0, 1
_COORDINATED: Final = {
    **dict.fromkeys(
        (
            *("init_producer_id", "add_partitions_to_txn", "add_offsets_to_txn", "end_txn"),
            *("describe_transactions", "list_transactions"),
        ),
        _TRANSACTIONS,
    ),
    **dict.fromkeys(("txn_offset_commit", "offset_fetch", "join_group", "sync_group"), _GROUPS),
}
"""Which coordinator is asked, by API."""
_OWN_TOPICS: Final = {"__transaction_state": _TRANSACTIONS, "__consumer_offsets": _GROUPS}
_PAUSE_S: Final = 0.02


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Have the conversations with a fresh cluster of three brokers."""
    rows: list[Row] = []
    with ExitStack() as stack:
        brokers = Brokers(cluster, stack)
        brokers.prepare()
        for name in [each for each in ALL if each not in LEFT_OUT]:
            talk = Talk(brokers, lambda: time.sleep(_PAUSE_S), _raise_no_epoch, f"{name}-")
            ALL[name](talk)
            talk.write_log()
            rows += _rows(name, talk.rows)
    return rows


def _rows(conversation: str, talked: list[Message]) -> list[Row]:
    """The rows, each named by its place, its API and version: ``7: end_txn v5``."""
    return [
        (f"Transactions, {conversation}", _request(place, row), json.dumps(row[2]))
        for place, row in enumerate(talked)
    ]


def _request(place: int, row: Message) -> str:
    kind, of, _ = row
    return f"{place}: {kind} v{of}" if isinstance(of, int) else f"{place}: log of {of}"


def _raise_no_epoch(_transactional_id: str, _epoch: int) -> None:
    raise AssertionError("a conversation that needs it is left out")


class Brokers:
    """Three brokers, of which the right one is asked."""

    def __init__(self, cluster: Cluster, stack: ExitStack) -> None:
        self._clients = {
            number: stack.enter_context(closing(BlockingClient(address)))
            for number, address in enumerate(cluster.addresses, 1)
        }
        self._coordinators: dict[int, int] = {}

    def ask(self, _broker_id: int, api_name: str, version: int, request: Message) -> Message:
        version = BY_NAME[api_name].max_version if version == NEWEST else version
        if api_name == "api_versions":  # what all know by now
            answers = (each.ask(api_name, version, request) for each in self._clients.values())
            return min(answers, key=lambda answer: int(answer.finalized_features_epoch))
        broker = self._broker(api_name, request)
        return self._clients[broker].ask(api_name, version, request)

    def create(self, topic: str) -> None:
        assignments = [(index, (_LEADER, *self._others)) for index in range(2)]
        topics = (creatable(topic, assignments=assignments),)
        request = CreateTopicsRequest(topics=topics, timeout_ms=20_000)
        self._clients[_LEADER].ask("create_topics", 7, request)
        wait_until(f"{topic} is served", lambda: self._is_served(topic))

    def prepare(self) -> None:
        """The topics, Kafka's own topics, and a block of producer ids."""
        for topic in TOPICS:
            self.create(topic)
        for kind in (_GROUPS, _TRANSACTIONS):
            wait_until("a coordinator", lambda kind=kind: self._find(kind))  # type: ignore[misc]  # mypy infers no type for its default
        init = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=1000)
        wait_until(
            "a producer id", lambda: not self.ask(_LEADER, "init_producer_id", 5, init).error_code
        )

    @property
    def _others(self) -> list[int]:
        return sorted(self._clients.keys() - {_LEADER})

    def _is_served(self, topic: str) -> bool:
        """Whether the leader serves it, and the others know it."""
        asked = list_offsets_request(topic, index=1)
        answer = self._clients[_LEADER].ask("list_offsets", 7, asked)
        metadata = MetadataRequest(topics=None)
        return not answer.topics[0].partitions[0].error_code and all(
            topic in {each.name for each in client.ask("metadata", 12, metadata).topics}
            for client in self._clients.values()
        )

    def _find(self, kind: int) -> bool:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("any",))
        (found,) = self._clients[_LEADER].ask("find_coordinator", 6, request).coordinators
        self._coordinators[kind] = found.node_id
        return not found.error_code

    def _broker(self, api_name: str, request: Message) -> int:
        kind = _COORDINATED.get(api_name)
        if kind is None:
            kind = next((_OWN_TOPICS[each] for each in _topics(request) & _OWN_TOPICS.keys()), None)
        return _LEADER if kind is None else self._coordinators[kind]


def _topics(request: Message) -> set[str]:
    """The topics that a Fetch or a WriteTxnMarkers names."""
    if hasattr(request, "markers"):
        return {topic.name for marker in request.markers for topic in marker.topics}
    return {each.topic for each in getattr(request, "topics", None) or () if hasattr(each, "topic")}
