"""The conversations: each a function of a `Talk`, with one subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from fencepost.broker.transactions.transaction_metadata import LAST_CLIENT_EPOCH
from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from fencepost.protocol.messages.describe_transactions import DescribeTransactionsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.transactions.marker_conversations import (
    UNKNOWN_ID,
    group_markers,
    group_offsets,
    markers,
    producer,
)
from tests.broker.transactions.talk import Talk
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import versions
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request


def end(talk: Talk, who: Producer, *, commit: bool) -> None:
    who.end(commit=commit)
    talk.settle(who.transactional_id)


def every_end(talk: Talk) -> None:
    """Each version ends transactions, repeats it, and wants the opposite."""
    for version in versions("end_txn"):
        for commit in (True, False):
            who = producer(talk, f"{version}{commit}", version=version)
            who.init()
            again = producer(talk, f"{version}{commit}", version=version)
            again.id, again.epoch = who.producer
            end(talk, who, commit=commit)  # of nothing
            who.add(0, 1, version=5 if version >= 5 else 3)
            again.id, again.epoch = who.producer
            end(talk, who, commit=commit)
            end(talk, again, commit=commit)
            again.id, again.epoch = again.id, again.epoch - (version >= 5)
            again.end(commit=not commit)
            end(talk, who, commit=False)
            end(talk, who, commit=True)
            for epoch in (-1, 1, 9):
                again.id, again.epoch = who.id, who.epoch + epoch
                again.end(commit=commit)
            again.id, again.epoch = UNKNOWN_ID, 0
            again.end(commit=commit)
    unknown = producer(talk, "unknown")
    unknown.id, unknown.epoch = UNKNOWN_ID, 0
    unknown.end(commit=True)
    unknown.transactional_id = ""
    unknown.end(commit=True)


def every_init(talk: Talk) -> None:
    """Each version begins, goes on after an error, and is fenced."""
    for version in versions("init_producer_id")[:6]:
        who = producer(talk, f"{version}")
        who.init(version=version)
        first = who.producer
        if version < 3:
            who.init(version=version)
            continue
        who.init(first, version=version)
        who.init(first, version=version)
        producer(talk, f"{version}").init(version=version)
        who.init(who.producer, version=version)
        who.init((UNKNOWN_ID, 0), version=version)
        who.init((first[0], 99), version=version)
    fresh = producer(talk, "fresh")
    fresh.init((UNKNOWN_ID, 5))
    for timeout_ms in (0, -1, 900_000, 900_001):
        producer(talk, "timeouts").init(timeout_ms=timeout_ms)
    nameless = producer(talk, "nameless")
    nameless.transactional_id = ""
    nameless.init()


def additions(talk: Talk) -> None:
    """Each version adds partitions: known, unknown, again, by fenced producers."""
    for version in versions("add_partitions_to_txn"):
        who = producer(talk, f"{version}", version=5 if version >= 4 else 4)
        who.add(0, version=version)
        who.init()
        who.add(0, version=version)
        who.add(0, 1, version=version)
        who.add(1, version=version)
        who.add(1, 7, version=version)
        who.verify(0, 1)
        end(talk, who, commit=True)
        who.verify(0)
        who.add(version=version)
        end(talk, who, commit=False)
        producer(talk, f"{version}").init()
        who.add(0, version=version)
        who.verify(0)
        who.id = UNKNOWN_ID
        who.add(0, version=version)
        who.transactional_id = ""
        who.add(0, version=version)


def offsets(talk: Talk) -> None:
    """Each version adds the offsets of a group."""
    for version in versions("add_offsets_to_txn"):
        who = producer(talk, f"{version}", version=4)
        who.init()
        for name, epoch in ((who.transactional_id, 0), (who.transactional_id, 3), ("", 0)):
            request = AddOffsetsToTxnRequest(
                transactional_id=name, producer_id=who.id, producer_epoch=epoch, group_id="g"
            )
            talk.ask(1, "add_offsets_to_txn", version, request)


def fencing(talk: Talk) -> None:
    """A successor aborts what is open; the zombie is told so in each version."""
    for version in versions("end_txn"):
        zombie = producer(talk, f"{version}", version=version)
        zombie.init()
        zombie.add(0, version=5 if version >= 5 else 3)
        successor = producer(talk, f"{version}", version=version)
        successor.init()
        talk.settle(successor.transactional_id)
        successor.init()
        for add in versions("add_partitions_to_txn"):
            zombie.add(0, version=add)
        zombie.verify(0)
        zombie.end(commit=True)
        zombie.end(commit=False)
        zombie.init(zombie.producer)
        successor.add(0, version=5 if version >= 5 else 3)
        end(talk, successor, commit=True)


def produce(
    talk: Talk, who: Producer, sequence: int, *, version: int, epoch: int = -1, topic: str = "t"
) -> None:
    epoch = who.epoch if epoch == -1 else epoch
    records = batch(b"v", producer=(who.id, epoch, sequence), transactional=True)
    request = replace(produce_request((topic, 0, records)), transactional_id=who.transactional_id)
    talk.ask(1, "produce", version, request)


def produced(talk: Talk) -> None:
    """Produce before, in and after transactions, in both flows."""
    for version in (9, 10, 11):
        who = producer(talk, f"{version}", version=4)
        who.init()
        produce(talk, who, 0, version=version)
        who.add(0)
        produce(talk, who, 0, version=version)
        produce(talk, who, 1, version=version)
        end(talk, who, commit=True)
        produce(talk, who, 2, version=version)
        who.add(0)
        produce(talk, who, 2, version=version)
        end(talk, who, commit=False)
        producer(talk, f"{version}").init()
        produce(talk, who, 3, version=version)
    who = producer(talk, "12")
    who.init()
    produce(talk, who, 0, version=12)
    produce(talk, who, 1, version=12)
    end(talk, who, commit=True)
    produce(talk, who, 0, version=12)
    end(talk, who, commit=False)
    produce(talk, who, 1, version=12, epoch=who.epoch - 1)
    produce(talk, who, 0, version=12, epoch=who.epoch + 1)
    end(talk, who, commit=False)
    stranger = producer(talk, "stranger")
    stranger.id, stranger.epoch = who.producer
    produce(talk, stranger, 0, version=12)
    produce(talk, stranger, 0, version=11)


def earlier_features(talk: Talk) -> None:
    """With ``transaction.version`` 1 and 0: the log's version, and aborts by the coordinator."""
    for level in (1, 0):
        talk.finalize(level)
        who = producer(talk, f"{level}", version=4)
        who.init()
        who.add(0, topic="u")
        end(talk, who, commit=True)
        who.add(1, topic="u")
        successor = producer(talk, f"{level}", version=4)
        successor.init()
        talk.settle(who.transactional_id)
        successor.init()
        who.end(commit=True)
        who.add(0, topic="u")
        produce(talk, who, 0, version=11, topic="u")
        successor.add(0, topic="u")
        produce(talk, successor, 0, version=11, topic="u")
        end(talk, successor, commit=False)
    talk.finalize(2)
    end(talk, successor, commit=False)


def last_epochs(talk: Talk) -> None:
    """An end and an InitProducerId that use up the epochs of a producer id, and are repeated."""
    for version in (5, 4):
        who = producer(talk, f"{version}", version=version)
        who.init()
        talk.skip_to(who.transactional_id, LAST_CLIENT_EPOCH - 2)
        who.init()
        again = producer(talk, f"{version}", version=version)
        for _ in range(3):
            again.id, again.epoch = who.producer
            if version == 4:
                who.init(who.producer)
                again.init(again.producer)
            who.add(0, version=5 if version >= 5 else 3)
            end(talk, who, commit=True)
            if version == 5:
                again.end(commit=False)
                end(talk, again, commit=True)
        again.init(who.producer)


def mixed_flows(talk: Talk) -> None:
    """The end of a zombie of the flow of version 2, whose successor follows the flow before.

    It is taken for a repetition of an end that bumped the epoch, and answered with the epoch of the
    successor.
    """
    for commit in (True, False):
        zombie = producer(talk, f"{commit}")
        zombie.init()
        successor = producer(talk, f"{commit}", version=4)
        successor.init()
        zombie.end(commit=commit)
        successor.add(0)
        zombie.end(commit=commit)
        end(talk, successor, commit=commit)
        again = producer(talk, f"{commit}")
        again.id, again.epoch = zombie.producer
        end(talk, zombie, commit=not commit)
        end(talk, zombie, commit=commit)
        zombie.add(0, version=5)
        end(talk, again, commit=commit)
        end(talk, successor, commit=commit)
        end(talk, zombie, commit=commit)


def shown(talk: Talk) -> None:
    """Ids in each state, described and listed."""
    empty, is_open, committed, aborted = (
        producer(talk, name) for name in ("empty", "open", "committed", "aborted")
    )
    for who in (empty, is_open, committed, aborted):
        who.init()
    for who in (is_open, committed, aborted):
        who.add(0, 1, version=5)
    end(talk, committed, commit=True)
    end(talk, aborted, commit=False)
    names = [*(each.transactional_id for each in (empty, is_open, committed, aborted)), "no", ""]
    request = DescribeTransactionsRequest(transactional_ids=tuple(names))
    talk.ask(1, "describe_transactions", 0, request)
    these = f"{talk.prefix}.*"
    for version, filters in (
        (0, {"producer_id_filters": (is_open.id, UNKNOWN_ID)}),
        (0, {"producer_id_filters": (is_open.id,), "state_filters": ("Nope", "Empty")}),
        (1, {"producer_id_filters": (is_open.id, empty.id), "duration_filter": 100_000}),
        (2, {"transactional_id_pattern": these}),
        (2, {"transactional_id_pattern": these, "state_filters": ("Ongoing", "Dead", "Nope")}),
        (2, {"transactional_id_pattern": f"{talk.prefix}(open|empty)"}),
        (2, {"transactional_id_pattern": "open"}),
        (2, {"transactional_id_pattern": "("}),
    ):
        asked = ListTransactionsRequest(**filters)
        talk.ask(1, "list_transactions", version, asked)
    end(talk, is_open, commit=True)


def internal_topics(talk: Talk) -> None:
    """Each version adds a partition of Kafka's own topics, as producers may not."""
    talk.find_group_coordinator()
    for version in versions("add_partitions_to_txn"):
        who = producer(talk, f"{version}")
        who.init()
        who.add(0, 99, topic="__consumer_offsets", version=version)
        who.add(0, topic="__consumer_offsets", version=version)
        end(talk, who, commit=False)


def coordinators(talk: Talk) -> None:
    """Each version that can looks for the coordinator of transactional ids."""
    for version in versions("find_coordinator", first=1):
        requests = [FindCoordinatorRequest(key_type=1, key=key) for key in ("a", "")]
        if version >= 4:
            lists: list[tuple[str, ...]] = [("a",), ("",), ("a", "b", "a"), ()]
            requests = [FindCoordinatorRequest(key_type=1, coordinator_keys=each) for each in lists]
        for request in requests:
            talk.record(1, "find_coordinator", version, request)


ALL: Final[dict[str, Callable[[Talk], None]]] = {
    each.__name__: each
    for each in (
        produced,
        every_end,
        every_init,
        additions,
        offsets,
        fencing,
        shown,
        earlier_features,
        last_epochs,
        internal_topics,
        coordinators,
        markers,
        group_offsets,
        group_markers,
        mixed_flows,
    )
}
