"""What a failing test's report tells of its cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.testing import Cluster
from fencepost.testing.report import ReportBaseline, fresh_baseline, take_baseline
from fencepost.testing.servers import ServerPool, read_options
from tests.harness.wire import Connection
from tests.testing.runs import UNDER_XDIST, pytest_run

if TYPE_CHECKING:
    from fencepost.testing.servers import Server


def ask(cluster: Cluster, client_id: str) -> None:
    host, _, port = cluster.bootstrap.partition(":")
    with Connection((host, int(port)), client_id=client_id) as connection:
        connection.call("Metadata", 12, {"Topics": None})


def told(watched: ReportBaseline) -> str:
    return "".join(f"{heading}\n{text}" for heading, text in watched.sections())


def test_the_requests_and_verbs_of_the_test_are_told_in_order(server: Server) -> None:
    watched = fresh_baseline(server)
    ask(server.cluster, "checkout")
    server.cluster.create_topic("orders")
    ask(server.cluster, "checkout")
    text = told(watched)
    assert f"what happened at {server.serving.bootstrap}" in text
    first, verb, event, second, *_ = text.splitlines()[1:]
    assert first.endswith("request  checkout -> 1  Metadata v12: ok")
    assert verb.endswith("verb     create_topic name=orders")
    assert event.endswith("event    orders: created, 1 partition, replication factor 1")
    assert second.endswith("request  checkout -> 1  Metadata v12: ok")


def test_the_state_at_the_end_is_told(server: Server) -> None:
    watched = fresh_baseline(server)
    server.cluster.create_topic("orders")
    text = told(watched)
    assert f"\nseed {server.serving.seed}\n" in text
    assert "\norders-0: leader 1 in epoch 0, ISR 1, high watermark 0," in text


def test_what_was_before_the_test_is_not_told(server: Server) -> None:
    server.cluster.create_topic("before")
    ask(server.cluster, "before")
    watched = take_baseline(server)
    server.cluster.create_topic("since")
    ask(server.cluster, "since")
    happened = told(watched).partition(" at the end")[0]
    assert "before" not in happened
    assert "create_topic name=since" in happened
    assert "since -> 1" in happened


def test_what_the_reset_before_the_test_deletes_is_not_told(server: Server) -> None:
    server.cluster.create_topic("before")
    server.serving.reset()
    watched = fresh_baseline(server)
    server.cluster.create_topic("since")
    happened = told(watched).partition(" at the end")[0]
    assert "before" not in happened
    assert "create_topic name=since" in happened


def test_a_reset_by_the_test_keeps_what_was_before(server: Server) -> None:
    watched = fresh_baseline(server)
    server.cluster.create_topic("orders")
    server.cluster.reset()
    text = told(watched)
    assert "create_topic name=orders" in text
    assert "---- reset ----" in text


def test_only_warnings_of_the_log_are_shown(server: Server) -> None:
    watched = fresh_baseline(server)
    server.cluster.create_topic("t", configs={"segment.bytes": "2000000"})
    assert "warnings of its log" not in told(watched)
    server.cluster.create_topic("u", configs={"flush.messages": "1"})
    text = told(watched).partition("warnings of its log")[2]
    assert '"event": "config_without_effect"' in text
    assert '"level": "info"' not in text


def test_a_server_that_is_gone_is_told(tmp_path: Path) -> None:
    servers = ServerPool(tmp_path)
    server = servers.dedicated(read_options({}, None))
    watched = fresh_baseline(server)
    server.serving.stop()
    servers.stop()
    assert "no control API answers at http://127.0.0.1:" in told(watched)


# -- in a run -----------------------------------------------------------------------------------

SOURCE = """
    import socket
    import struct

    import pytest

    def ask(bootstrap, client_id):
        '''Metadata v0 of all topics.'''
        host, port = bootstrap.split(":")
        name = client_id.encode()
        head = struct.pack(">hhih", 3, 0, 1, len(name)) + name + struct.pack(">i", 0)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(struct.pack(">i", len(head)) + head)
            assert connection.recv(4)

    def test_that_passes(fencepost, fencepost_session):
        ask(fencepost.bootstrap, "in-passing")
        ask(fencepost_session.bootstrap, "in-passing")

    def test_that_fails(fencepost):
        ask(fencepost.bootstrap, "own")
        assert fencepost.topics()

    def test_that_fails_with_the_sessions(fencepost_session):
        ask(fencepost_session.bootstrap, "shared")
        assert fencepost_session.topics()

    @pytest.fixture
    def made(fencepost):
        ask(fencepost.bootstrap, "setting-up")
        raise OSError("no more")

    def test_whose_setup_fails(made):
        pass
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failing_test_shows_what_its_cluster_was_asked(tmp_path: Path, workers: int) -> None:
    options = ["-rP", f"-n{workers}"]  # what is captured of tests that pass is shown as well
    done = pytest_run(tmp_path, SOURCE, *options, plugins=UNDER_XDIST, code=1)
    assert "2 failed, 1 passed, 1 error" in done.out
    for client_id in ("own", "shared", "setting-up"):
        assert done.out.count(f" {client_id} -> 1  Metadata v0: ok") == 1
    assert "in-passing ->" not in done.out


def test_the_warnings_of_a_failing_test_are_shown(tmp_path: Path) -> None:
    source = """
        def test_that_fails(fencepost):
            fencepost.create_topic("orders", configs={"flush.messages": "1"})
            assert not fencepost.topics()
    """
    done = pytest_run(tmp_path, source, code=1)
    assert "fencepost: warnings of its log, " in done.out
    assert '"event": "config_without_effect"' in done.out


TUTORIAL: Final = """
    import pytest
    from confluent_kafka import Consumer, Producer, TopicPartition

    @pytest.mark.fencepost(brokers=3, topics=["orders:1:3"])
    def test_no_order_is_there_twice(fencepost):
        fencepost.add_fault("Produce", topic="orders", after=10, action={"disconnect": "after"})
        settings = {"bootstrap.servers": fencepost.bootstrap, "client.id": "shop"}
        producer = Producer({**settings, "acks": "all"})
        for number in range(100):
            producer.produce("orders", f"order {number}")
            producer.flush()
        fencepost.kill_broker(fencepost.partition("orders", 0).leader)
        consumer = Consumer({**settings, "client.id": "count", "group.id": "count"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        orders = set()
        while len(orders) < 100:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                assert message.value() not in orders
                orders.add(message.value())
"""


def test_the_failure_of_the_tutorial_is_told_in_under_60_lines(tmp_path: Path) -> None:
    """Every verb, election, hit of a fault and request is there, in one order."""
    done = pytest_run(tmp_path, TUTORIAL, code=1)
    report = done.out[done.out.index("fencepost: what happened") :].partition("short test summ")[0]
    assert len(report.splitlines()) < 60
    places = []
    for text in (
        "verb     create_topic name=orders",
        "verb     add_fault api=Produce, topic=orders, after=10, action=disconnect after",
        r"Produce v10 orders-0: 10 records, at 0 to 9, ok \(10 times until",
        "Produce v10 orders-0: 1 record, no answer",
        "fault 1 hits Produce of shop at broker",
        r"Produce v10 orders-0: 90 records, at 11 to 100, ok \(90 times until",
        "verb     kill_broker broker",
        "in epoch 1",
        "Fetch v",
        "seed ",
    ):
        found = re.search(text, report)
        assert found, f"{text} is not in it:\n{report}"
        places.append(found.start())
    assert places == sorted(places)
    assert "Telemetry" not in report
    assert "__consumer_offsets" not in report
