"""Clients that have read what an unclean election takes away (KIP-320): docs/stories.md, played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.stories import TOPIC, Stage, prints, serve_options, stage
from tests.harness import java
from tests.harness.confluent import read_partition, send
from tests.harness.dialogue import Dialogue
from tests.harness.served_cluster import unique

CLIENTS = ("java", "confluent")
NOTICED = {"java": "LogTruncationException", "confluent": "log truncation detected"}
NOT_LEADER = 6
READ_BEFORE = "a0 at 0 to a19 at 19"


def test_the_java_consumer_is_told_where_the_logs_part(fresh: Stage) -> None:
    fresh.play("truncation-before")
    group = unique("shipping")
    arguments = [fresh.cluster.bootstrap, TOPIC, group, "20"]
    program = java.story_command("TruncationStory", *arguments)
    with Dialogue(program, fresh.folder / "truncation.log") as consumers:
        before = prints("truncation-before")
        assert consumers.hear_until(before[-1]) == before
        fresh.play("truncation")
        consumers.say()
        assert consumers.end() == prints("truncation")
    _asked_where_the_epoch_ends(fresh, "truncation-none")
    _fetched_nothing_before(fresh, "truncation-none")
    _epoch_was_committed(fresh, group)


def _asked_where_the_epoch_ends(stage: Stage, client_id: str) -> None:
    """Of the new leader, in its epoch; the answer is what made the difference."""
    answers = stage.answers("OffsetForLeaderEpoch", client_id)
    (request, *_) = stage.control.trace(api="OffsetForLeaderEpoch", client_id=client_id)
    (asked,) = request["request"]["topics"][0]["partitions"]
    assert (request["broker"], asked["current_leader_epoch"], asked["leader_epoch"]) == (3, 1, 0)
    assert (answers[0]["error_code"], answers[0]["leader_epoch"]) == (0, 0)
    assert answers[0]["end_offset"] == 10


def _fetched_nothing_before(stage: Stage, client_id: str) -> None:
    """From the new leader, until it was told where its epoch ends."""
    exchanges = stage.control.trace(client_id=client_id)
    asked = [each["api"] for each in exchanges if each["broker"] == 3]
    assert asked.index("OffsetForLeaderEpoch") < asked.index("Fetch")


def _epoch_was_committed(stage: Stage, group: str) -> None:
    """By the member that read, and was there for the member that came later."""
    (commit,) = stage.control.trace(api="OffsetCommit", client_id="truncation-earliest")
    assert commit["request"]["group_id"] == group
    (sent,) = commit["request"]["topics"][0]["partitions"]
    assert (sent["committed_offset"], sent["committed_leader_epoch"]) == (20, 0)
    fetches = stage.control.trace(api="OffsetFetch", client_id="truncation-none")
    (found,) = fetches[-1]["response"]["groups"][0]["topics"][0]["partitions"]
    assert (found["committed_offset"], found["committed_leader_epoch"]) == (20, 0)


@pytest.mark.parametrize(
    ("policy", "printed"),
    [
        ("error", "truncation-librdkafka"),
        ("earliest", "truncation-librdkafka-reset"),
        ("latest", "truncation-librdkafka-reset"),
    ],
)
def test_librdkafka_notices(fresh: Stage, policy: str, printed: str) -> None:
    fresh.play("truncation-before")
    with fresh.client("confluent", policy=policy) as reader:
        before = reader.ask("read 20")
        fresh.play("truncation")
        assert [before, reader.ask("read 5")] == prints(printed)
        reader.end()


@pytest.mark.timeout(600)
def test_franz_go_notices(fresh: Stage) -> None:
    fresh.play("truncation-before")
    with fresh.client("go") as reader:
        printed = [reader.ask("read 20")]
        fresh.play("truncation")
        printed += [reader.ask("read 5"), reader.ask("read 5")]
        reader.end()
    assert printed == prints("truncation-franz-go")


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ("java", "LogTruncationException: 20 diverges at 10, epoch 0"),
        ("confluent", "broker end offset is 10 (offset leader epoch 0)"),
    ],
)
def test_an_epoch_that_the_leader_never_had_ends_where_its_next_one_begins(
    fresh: Stage, client: str, told: str
) -> None:
    """Epoch 1 was lost with its leader: the logs parted there at the latest."""
    with fresh.verbs() as verbs:
        verbs.create_topic(TOPIC, assignments=[[1, 2, 3]])
    send(fresh.cluster, TOPIC, [b"a%d" % n for n in range(10)])
    fresh.control.replica("hold", TOPIC, 3, leave_isr=True)
    assert fresh.control.elect(TOPIC, 2)["leader_epoch"] == 1
    send(fresh.cluster, TOPIC, [b"a%d" % n for n in range(10, 20)])
    with fresh.client(client) as reader:
        assert reader.ask("read 20") == READ_BEFORE
        elected = fresh.control.elect(TOPIC, 3, unclean=True)
        (new,) = (each for each in elected["replicas"] if each["broker"] == 3)
        assert [each["epoch"] for each in new["epochs"]] == [0, 2]
        assert told in reader.ask("read 1")
        reader.end()


@pytest.mark.parametrize("client", CLIENTS)
def test_of_an_old_message_format_consumers_notice_nothing(fresh: Stage, client: str) -> None:
    """Without epochs in its records there is nothing that a consumer could compare."""
    configs = {"message.format.version": "0.10.2"}
    with fresh.verbs() as verbs:
        verbs.create_topic(TOPIC, assignments=[[1, 2, 3]], configs=configs)
    send(fresh.cluster, TOPIC, [b"a%d" % n for n in range(10)])
    fresh.control.replica("hold", TOPIC, 3, leave_isr=True)
    send(fresh.cluster, TOPIC, [b"a%d" % n for n in range(10, 20)])
    with fresh.client(client) as reader:
        before = reader.ask("read 20")
        fresh.wait_until_no_fetch(client)
        fresh.play("missed")
        assert [before, reader.ask("read 5")] == prints("missed")
        reader.end()
    if client == "java":  # librdkafka asks, and is told that there are no epochs
        assert fresh.answers("OffsetForLeaderEpoch", client) == []


# -- behind an old broker -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("old"), *serve_options("serve-old")) as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
def test_behind_an_old_broker_records_are_missed(old: Stage, client: str) -> None:
    old.control.reset()
    old.play("truncation-before")
    with old.client(client) as reader:
        before = reader.ask("read 20")
        old.play("missed")
        after = reader.ask("read 5")
        reader.end()
    assert [before, after] == prints("missed")
    assert {fetch["version"] for fetch in old.answers("Fetch", client)} == {8}
    assert {fetch["error_code"] for fetch in old.answers("Fetch", client)} <= {0, NOT_LEADER}
    assert old.control.trace(api="OffsetForLeaderEpoch", client_id=client) == []
    missed = read_partition(old.cluster, TOPIC, 10, start=10)
    assert [message.value() for message in missed] == [b"b%d" % n for n in range(10, 20)]


@pytest.mark.parametrize("client", CLIENTS)
def test_fetch_8_alone_does_not_hide_it(client: str, tmp_path: Path) -> None:
    with stage(tmp_path, "--api-max", "fetch=8") as half:
        half.play("truncation-before")
        with half.client(client) as reader:
            assert reader.ask("read 20") == READ_BEFORE
            half.wait_until_no_fetch(client)
            half.play("missed")
            assert NOTICED[client] in reader.ask("read 5")
            reader.end()
        assert {fetch["version"] for fetch in half.answers("Fetch", client)} == {8}
