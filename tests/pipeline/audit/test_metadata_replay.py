"""What metadata logs, written here, tell of topics, elections and brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from fencepost.broker.data_dir.metadata_log import CorruptMetadataLog, Record, encode_line
from fencepost.pipeline.audit.cluster_metadata import (
    Assignment,
    BrokerRegistration,
    ClusterMetadata,
    LeaderElection,
    PartitionIncarnation,
)
from fencepost.pipeline.audit.metadata_replay import replay_fencepost, replay_kafka
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.metadata_records import (
    BROKER_RESOURCE,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)
from fencepost.storage.files.file_system import RealFileSystem
from tests.harness.metadata_logs import (
    TIME,
    TOPIC_ID,
    batches,
    config,
    node,
    partition,
    snapshot,
    topic,
)

OTHER_ID = UUID("99999999-2222-3333-4444-555555555555")
DIR_1, DIR_2 = UUID(int=101), UUID(int=102)
FILES = RealFileSystem()


def kafka(tmp_path: Path, *values: object, state: tuple[object, ...] = ()) -> ClusterMetadata:
    """What a log tells; with a state, one that begins at offset 10 with a snapshot of it."""
    start = 10 if state else 0
    files = {f"log_{start}": batches(start, *values)}
    if state:
        files["snapshot_10"] = snapshot(*state)
    return replay_kafka(FILES, node(tmp_path, 1, **files))


def only(metadata: ClusterMetadata, name: str = "t") -> PartitionIncarnation:
    (found,) = metadata.partition(name, 0).incarnations
    return found


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(0, TOPIC_ID, **fields)  # type: ignore[arg-type]  # fields by name


def unclean_epochs(found: PartitionIncarnation) -> dict[int, bool | None]:
    return {each.leader_epoch: each.is_unclean for each in found.elections}


# -- elections ----------------------------------------------------------------------------------


def test_a_life_of_a_partition(tmp_path: Path) -> None:
    metadata = kafka(
        tmp_path,
        topic(),
        partition(1, 2, directories=(DIR_1, DIR_2)),
        change(isr=(1,), eligible_leader_replicas=(2,)),
        change(leader=-1, isr=(), eligible_leader_replicas=(1, 2)),
        change(leader=2, isr=(2,), eligible_leader_replicas=(1,)),
        change(isr=(2, 1), eligible_leader_replicas=()),
    )
    found = only(metadata)
    assert (found.topic_id, found.created, found.deleted) == (format_uuid(TOPIC_ID), 0, None)
    first = LeaderElection(
        offset=1,
        time_ms=TIME + 1000,
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        isr=(1, 2),
        elr=(),
        is_recovering=False,
        is_unclean=False,
    )
    none = replace(
        first, offset=3, time_ms=TIME + 3000, leader=-1, leader_epoch=1, isr=(), elr=(1, 2)
    )
    last = replace(
        first, offset=4, time_ms=TIME + 4000, leader=2, leader_epoch=2, isr=(2,), elr=(1,)
    )
    assert found.elections == (
        first,
        replace(none, partition_epoch=2),
        replace(last, partition_epoch=3),
    )
    directories = (format_uuid(DIR_1), format_uuid(DIR_2))
    assert found.assignments == (Assignment(offset=1, replicas=(1, 2), directories=directories),)
    assert (found.last.isr, found.last.elr, found.last.partition_epoch) == ((2, 1), (), 4)
    source = metadata.reading.source
    assert source is not None
    assert (source.start, source.end, source.unit) == (0, 6, "offset")
    assert source.text.endswith("__cluster_metadata-0, all of it up to offset 5")


def test_a_leader_outside_of_the_isr_was_elected_uncleanly(tmp_path: Path) -> None:
    found = only(
        kafka(
            tmp_path,
            topic(),
            partition(1, 2, 3),
            change(isr=(1,)),
            change(leader=2, isr=(2,)),
            change(leader=2),
            change(leader=-1),
            change(leader=3, isr=(3,), leader_recovery_state=0),
        )
    )
    assert unclean_epochs(found) == {0: False, 1: True, 2: False, 3: False, 4: True}


def test_a_leader_that_has_to_recover_was_elected_uncleanly(tmp_path: Path) -> None:
    found = only(
        kafka(
            tmp_path,
            topic(),
            partition(1, 2),
            change(leader=2, leader_recovery_state=1),
            change(leader=1),
            change(leader_recovery_state=0),
            change(leader=2),
        )
    )
    assert unclean_epochs(found) == {0: False, 1: True, 2: False, 3: False}
    assert [each.is_recovering for each in found.elections] == [False, True, True, False]


def test_nobody_is_eligible_once_the_elr_is_cleared(tmp_path: Path) -> None:
    values = (topic(), partition(1, 2), change(isr=(1,), eligible_leader_replicas=(2,)))
    for number, record in enumerate((ClearElrRecord("t"), ClearElrRecord(), ClearElrRecord("u"))):
        metadata = kafka(tmp_path / str(number), *values, record, change(leader=2, isr=(2,)))
        assert unclean_epochs(only(metadata)) == {0: False, 1: number < 2}


def test_a_state_does_not_tell_how_its_leader_was_elected(tmp_path: Path) -> None:
    state = (topic(), partition(1, 2, isr=(1,), leader_epoch=7, partition_epoch=9))
    metadata = kafka(tmp_path, change(leader=2, isr=(2,)), change(leader=1), state=state)
    found = only(metadata)
    assert found.created is None
    assert unclean_epochs(found) == {7: None, 8: True, 9: True}
    assert not found.are_clean(6, 7)
    assert found.unclean_election(7, 8) == found.elections[1]
    assert found.election(6) is None
    source = metadata.reading.source
    assert source is not None
    assert source.text.endswith("offset 10 to 11; the history before offset 10 is not there")


def test_a_state_of_a_leader_that_has_to_recover(tmp_path: Path) -> None:
    for leader, unclean in ((1, True), (-1, None)):
        state = (topic(), partition(1, 2, leader=leader, leader_recovery_state=1))
        metadata = kafka(tmp_path / str(leader), topic("u", OTHER_ID), state=state)
        assert unclean_epochs(only(metadata)) == {0: unclean}


def test_what_is_known_to_be_clean(tmp_path: Path) -> None:
    found = only(kafka(tmp_path, topic(), partition(1, 2), change(leader=2), change(leader=1)))
    assert found.are_clean(-1, 2)
    assert found.are_clean(0, 1)
    assert not found.are_clean(0, 3)
    assert found.unclean_election(-1, 3) is None


# -- topics, assignments, brokers, configs ------------------------------------------------------


def test_a_topic_that_is_deleted_and_created_again(tmp_path: Path) -> None:
    metadata = kafka(
        tmp_path,
        topic(),
        partition(1, 2),
        config("t", "a", "1"),
        RemoveTopicRecord(TOPIC_ID),
        topic("t", OTHER_ID),
        partition(2, topic_id=OTHER_ID),
        config("t", "b", "2"),
    )
    old, new = metadata.partition("t", 0).incarnations
    assert (old.created, old.deleted, new.created, new.deleted) == (0, 3, 4, None)
    assert [each.topic_id for each in metadata.topics["t"]] == [old.topic_id, new.topic_id]
    assert metadata.partition("t", 0).incarnation(old.topic_id) == old
    assert metadata.partition("t", 0).incarnation(None) == new
    assert metadata.partition("t", 0).incarnation("another") is None
    assert metadata.partition("t", 1).incarnations == ()
    assert metadata.partition("u", 0).incarnation(None) is None
    assert metadata.topic_configs == {"t": {"b": "2"}}


def test_a_reassignment(tmp_path: Path) -> None:
    found = only(
        kafka(
            tmp_path,
            topic(),
            partition(1, 2, directories=(DIR_1, DIR_2)),
            change(replicas=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,)),
            change(isr=(1, 2, 3)),
            change(
                replicas=(2, 3),
                isr=(2, 3),
                adding_replicas=(),
                removing_replicas=(),
                directories=(DIR_2, None),
                leader=2,
            ),
        )
    )
    one, two = format_uuid(DIR_1), format_uuid(DIR_2)
    assert found.assignments == (
        Assignment(offset=1, replicas=(1, 2), directories=(one, two)),
        Assignment(
            offset=2, replicas=(1, 2, 3), adding=(3,), removing=(1,), directories=(one, two)
        ),
        Assignment(offset=4, replicas=(2, 3), directories=(two, None)),
    )
    assert unclean_epochs(found) == {0: False, 1: False}


def test_brokers_and_their_directories(tmp_path: Path) -> None:
    metadata = kafka(
        tmp_path,
        RegisterBrokerRecord(2, broker_epoch=5, rack="r", log_dirs=(DIR_1,)),
        RegisterBrokerRecord(1, broker_epoch=6),
        BrokerRegistrationChangeRecord(2, 5, fenced=-1),
        BrokerRegistrationChangeRecord(2, 5, log_dirs=(DIR_1, DIR_2)),
        BrokerRegistrationChangeRecord(3, 5, log_dirs=(DIR_1,)),
        UnregisterBrokerRecord(1, 6),
    )
    directories = (format_uuid(DIR_1), format_uuid(DIR_2))
    assert metadata.brokers == {
        1: BrokerRegistration(broker=1, epoch=6, is_registered=False),
        2: BrokerRegistration(broker=2, epoch=5, rack="r", directories=directories),
    }


def test_configs_of_topics_and_brokers(tmp_path: Path) -> None:
    def of_brokers(name: str, key: str, text: str | None) -> ConfigRecord:
        return ConfigRecord(BROKER_RESOURCE, name, key, text)

    metadata = kafka(
        tmp_path,
        config("t", "cleanup.policy", "compact"),
        config("u", "cleanup.policy", "compact"),
        config("u", "cleanup.policy", None),
        of_brokers("", "log.cleanup.policy", "delete"),
        of_brokers("2", "log.cleanup.policy", "compact"),
        of_brokers("3", "x", "y"),
        of_brokers("3", "x", None),
    )
    policy = ("cleanup.policy", "log.cleanup.policy")
    assert metadata.config_values("t", *policy) == {"compact"}
    assert metadata.config_values("u", *policy) == {"delete", "compact"}
    assert metadata.config_values("u", "retention.ms", "log.retention.ms") == frozenset()
    assert metadata.broker_configs.keys() == {None, 2}


def test_changes_of_what_is_not_known_are_left_out(tmp_path: Path) -> None:
    metadata = kafka(
        tmp_path, change(leader=2), partition(1, 2), RemoveTopicRecord(TOPIC_ID), topic()
    )
    assert metadata.partition("t", 0).incarnations == ()


def test_metadata_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    log = node(tmp_path, 1, log_3=batches(3, topic()))
    metadata = replay_kafka(FILES, log)
    assert metadata.reading.source is None
    none, problem = metadata.reading.lines
    assert none == "cluster metadata: none"
    assert problem.startswith(f"{log} begins at offset 3")


# -- fencepost's --------------------------------------------------------------------------------


def fencepost(tmp_path: Path, *lines: list[Record]) -> ClusterMetadata:
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "registry.log"
    path.write_bytes(b"".join(encode_line(line) for line in lines))
    return replay_fencepost(FILES, path)


def beginning(*more: Record, starts: int = 1, version: int = 1) -> list[Record]:
    return [["cluster", 2, "c", starts], ["brokers", {"1": 1}], ["version", version], *more]


TOPIC = ["topic", "t", TOPIC_ID.hex, {"retention.ms": "1"}, [[[1, 2], [1, 2], 1, 0, 0]]]


def test_a_life_in_fencepost(tmp_path: Path) -> None:
    metadata = fencepost(
        tmp_path,
        beginning(),
        [["version", 2], TOPIC],
        [["version", 3], ["partition", "t", 0, [[1, 2], [1], 1, 0, 1]]],
        [["producer_ids", 1000]],
        [["version", 4], ["partition", "t", 0, [[1, 2], [2], 2, 1, 2]]],
        [["version", 5], ["partition", "t", 0, [[1, 2, 3], [2], 2, 1, 3, [], [], [3]]]],
        [["version", 6], ["partition", "t", 0, [[2, 3], [2, 3], 3, 2, 4]]],
        [["version", 7], ["deleted", "t", TOPIC_ID.hex]],
        [["version", 8], ["topic", "t", OTHER_ID.hex, {}, [[[1], [1], 1, 0, 0]]]],
        [["version", 9], ["broker_configs", None, {"log.cleanup.policy": "compact"}]],
    )
    old, new = metadata.partition("t", 0).incarnations
    assert (old.created, old.deleted, new.created, new.deleted) == (2, 7, 8, None)
    assert [(e.offset, e.leader, e.is_unclean) for e in old.elections] == [
        (2, 1, False),
        (4, 2, True),
        (6, 3, True),
    ]
    assert old.assignments == (
        Assignment(offset=2, replicas=(1, 2)),
        Assignment(offset=5, replicas=(1, 2, 3), adding=(3,)),
        Assignment(offset=6, replicas=(2, 3)),
    )
    assert metadata.brokers == {1: BrokerRegistration(broker=1, epoch=1)}
    assert metadata.config_values("t", "cleanup.policy", "log.cleanup.policy") == {"compact"}
    (line,) = metadata.reading.lines
    assert line.endswith("registry.log, all of it up to version 9")


@pytest.mark.parametrize("starts", [1, 2])
def test_a_file_that_begins_with_a_state(tmp_path: Path, starts: int) -> None:
    """With topics it is a state, in the first process as well: it may be a real Kafka's."""
    state = beginning(TOPIC, starts=starts, version=7)
    change = [["version", 8], ["partition", "t", 0, [[1, 2], [1, 2], 2, 1, 1]]]
    metadata = fencepost(tmp_path, state, change)
    assert unclean_epochs(only(metadata)) == {0: None, 1: False}
    assert only(metadata).created is None
    (line,) = metadata.reading.lines
    assert line.endswith("version 7 to 8; the history before version 7 is not there")


def test_more_partitions_are_no_new_topic(tmp_path: Path) -> None:
    more = ["topic", "t", TOPIC_ID.hex, {}, [[[1, 2], [1, 2], 1, 0, 0], [[2], [2], 2, 0, 0]]]
    metadata = fencepost(tmp_path, beginning(), [["version", 2], TOPIC], [["version", 3], more])
    assert len(only(metadata).elections) == 1
    (second,) = metadata.partition("t", 1).incarnations
    assert (second.created, second.elections[0].offset) == (2, 3)


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "registry.log").write_bytes(b"x\n" + encode_line(beginning()))
    with pytest.raises(CorruptMetadataLog, match="line 1 is damaged"):
        replay_fencepost(FILES, tmp_path / "registry.log")
