"""What an event makes ``watch`` look at again, and what it leaves alone."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from fencepost.cli import watch as watch_module
from fencepost.cli.typer_options import control_connection
from fencepost.cli.watch import LinePrinter, TopicPartition, WatchState
from fencepost.cli.watch_screen import Screen
from fencepost.client import Client, NewRecord, Partition, TransactionalProducer
from fencepost.verbs.answers.cluster import EventState
from tests.cli.shell import Shell, produce
from tests.harness.served_cluster import Cluster

T0 = TopicPartition(internal=False, topic="t", partition=0)


def event(kind: str, topic: str | None = None, partition: int | None = None) -> EventState:
    return EventState(
        number=1, kind=kind, time_ms=0, topic=topic, partition=partition, broker=None, details={}
    )


@pytest.fixture
def watched(control: str) -> Iterator[WatchState]:
    with control_connection(control) as line:
        yield WatchState(line, ())


def test_a_partition_is_looked_at_when_an_event_is_about_it(
    watched: WatchState, shell: Shell
) -> None:
    shell.json("hold t 0 3 --at 0")
    watched.record([event("replica_held", "u", 0)])
    assert not watched.partitions[T0].replicas[2].held
    watched.record([event("replica_held", "t", 0)])
    assert watched.partitions[T0].replicas[2].held


@pytest.mark.parametrize("kind", ["broker_changed", "topic_created", "reset"])
def test_everything_is_looked_at_when_an_event_is_about_much(
    kind: str, watched: WatchState, shell: Shell
) -> None:
    shell.json("topic create u")
    shell.json("broker stop 2")
    shell.json("fault add Fetch --drop --topic none")
    watched.record([event(kind)])
    assert watched.partitions[T0].offline == (2,)
    assert TopicPartition(internal=False, topic="u", partition=0) in watched.partitions
    assert watched.cluster.brokers[1].state == "stopped"
    assert len(watched.faults) == 1


def test_faults_are_looked_at_when_an_event_is_about_one(watched: WatchState, shell: Shell) -> None:
    shell.json("fault add Fetch --drop --topic none")
    watched.record([event("fault_added")])
    assert len(watched.faults) == 1


def test_what_is_gone_is_forgotten(watched: WatchState, shell: Shell) -> None:
    shell.json("topic delete t")
    watched.record([event("leader_changed", "t", 0)])
    assert watched.partitions == {}


def test_partitions_are_looked_at_in_turn(
    watched: WatchState, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.json("topic create s")
    watched.refresh_all()
    produce(shell, "t")
    monkeypatch.setattr(watch_module, "REFRESH_BATCH", 1)
    watched.refresh_some()
    assert watched.partitions[T0].high_watermark == 0
    watched.refresh_some()
    assert watched.partitions[T0].high_watermark == 1
    produce(shell, "t")
    watched.refresh_some()
    watched.refresh_some()
    assert watched.partitions[T0].high_watermark == 2


def test_too_many_partitions_are_counted(
    watched: WatchState, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.json("topic create u --partitions 5")
    monkeypatch.setattr(watch_module, "MAX_PARTITIONS", 4)
    watched.refresh_all()
    assert (len(watched.partitions), watched.omitted) == (4, 2)


def test_internal_topics_stand_last_and_are_left_out_first(
    control: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.json("topic create __consumer_offsets")
    shell.json("topic create u")
    with control_connection(control) as line:
        watched = WatchState(line, ())
        assert [name.topic for name in watched.partitions] == ["t", "u", "__consumer_offsets"]
        monkeypatch.setattr(watch_module, "MAX_PARTITIONS", 2)
        watched.refresh_all()
        assert [name.topic for name in watched.partitions] == ["t", "u"]
        assert watched.omitted == 1


def leave_open_transaction(bootstrap: str) -> None:
    """With one record in t-0; its producer is gone."""

    async def leave_open() -> None:
        async with Client(bootstrap) as client:
            producer = TransactionalProducer(client, "copier")
            await producer.init()
            await producer.begin()
            await producer.send(Partition(topic="t", index=0), [NewRecord(value=b"a", timestamp=0)])

    asyncio.run(leave_open())


def test_transactions_are_shown_as_long_as_they_are_open(
    watched: WatchState, shared: Cluster, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Console(file=io.StringIO(), width=100, height=30)
    leave_open_transaction(shared.bootstrap)
    watched.record([event("transaction_changed")])
    LinePrinter(as_json=False).print(watched)
    screen.print(Screen(watched, "http://here"))
    line = "transaction copier: Ongoing of t-0, producer "
    assert line in capsys.readouterr().out
    assert isinstance(screen.file, io.StringIO)
    assert line in screen.file.getvalue()
    shell.json("transaction abort copier")
    watched.record([event("transaction_changed")])
    assert watched.transactions == []


def test_transactions_are_shown_of_the_topics_that_are_watched(
    control: str, shared: Cluster
) -> None:
    leave_open_transaction(shared.bootstrap)
    with control_connection(control) as line:
        assert not WatchState(line, ("u",)).transactions
        assert len(WatchState(line, ("t", "u")).transactions) == 1
