"""Records the conversations of a real broker: ``python -m tests.broker.transactions.record
HOST:PORT [NAME...]``, of all of them or of some.

The broker is a new one with one partition of ``__transaction_state``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Final

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.groups.talk import TOPICS, Message
from tests.broker.transactions.conversations import ALL
from tests.broker.transactions.talk import Talk
from tests.harness.driver import NEWEST
from tests.harness.typed_client import BlockingClient
from tests.harness.typed_requests import list_offsets_request

ANSWERS: Final = Path(__file__).with_name("answers.jsonl")
_PAUSE_S: Final = 0.05


class RealBroker:
    """The only broker of a cluster."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._client = BlockingClient(address)

    def ask(self, _broker_id: int, api_name: str, version: int, request: Message) -> Message:
        version = BY_NAME[api_name].max_version if version == NEWEST else version
        return self._client.ask(api_name, version, request)

    def create(self, topic: str) -> None:
        """Create a topic of two partitions, and wait until the broker leads them."""
        topics = (CreatableTopic(name=topic, num_partitions=2, replication_factor=1),)
        self.ask(1, "create_topics", 7, CreateTopicsRequest(topics=topics, timeout_ms=5000))
        asked = list_offsets_request(topic, index=1)
        while self.ask(1, "list_offsets", 7, asked).topics[0].partitions[0].error_code:
            time.sleep(_PAUSE_S)

    def raise_epoch(self, transactional_id: str, epoch: int) -> None:
        """By as many InitProducerId (a minute for the last epochs)."""
        init = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        while self.ask(1, "init_producer_id", 5, init).producer_epoch < epoch:
            pass

    def prepare(self) -> None:
        """The topics, the transaction topic, and a block of producer ids."""
        for name in TOPICS:
            self.create(name)
        find = FindCoordinatorRequest(key="any", key_type=1)
        while self.ask(1, "find_coordinator", 1, find).error_code:
            time.sleep(_PAUSE_S)
        init = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=1000)
        while self.ask(1, "init_producer_id", 5, init).error_code:
            time.sleep(_PAUSE_S)


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    broker = RealBroker((host, int(port)))
    broker.prepare()
    names = sys.argv[2:] or [*ALL]
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    rows = [row for row in rows if row["in"] not in names]
    for name in names:
        talk = Talk(broker, lambda: time.sleep(_PAUSE_S), broker.raise_epoch, f"{name}-")
        ALL[name](talk)
        talk.write_log()
        rows += [{"in": name, "row": row} for row in talk.rows]
    ANSWERS.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


if __name__ == "__main__":
    main()
