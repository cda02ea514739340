"""The rules about log directories find what was done to those of a cluster, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fencepost.pipeline.audit.directory_rule import read_listings
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.datasource.log_directories import UnreadableSource, find_log_dirs
from fencepost.storage.formats.checkpoints import decode_properties, encode_properties
from tests.harness.control_client import Json
from tests.harness.wait import wait_until
from tests.pipeline.audit.rigs import Left, Rig, audit_directories, rig, unexplained

META: Final = "meta-properties"
PARTITIONS: Final = "partition-directories"
LEFT: Final = "leftover-directories"


def delete(made: Rig, topic: str) -> Json:
    return made.control._ask("DELETE", f"/v1/topics/{topic}")


def is_checkpointed(made: Rig, topic: str) -> bool:
    files = (made.place / "data").glob("broker-*/recovery-point-offset-checkpoint")
    texts = [path.read_text() for path in files]
    return len(texts) == 3 and all(f"{topic} 0 " in text for text in texts)


@pytest.fixture(scope="module")
def lefts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Left]:
    """What there was of a cluster of which topics were deleted, in the order of its life."""
    found = {}
    with rig(tmp_path_factory.mktemp("rig") / "rig") as made:
        for topic in ("kept", "first", "second", "third"):
            made.create(topic)
            made.produce(topic, 6)
        wait_until("it is checkpointed", lambda: is_checkpointed(made, "third"))
        found["running"] = made.left("running")
        delete(made, "first")
        made.tell("brokers/1/stop")
        delete(made, "second")
        found["a topic less"] = made.left("less")
        made.kill()
        found["killed"] = made.left("killed")
        made.start()
        made.tell("brokers/2/kill")
        delete(made, "third")
        made.stop()
        found["one killed"] = made.left("one-killed")
        made.start()
        made.stop()
        found["stopped"] = made.left("stopped")
    return found


@pytest.fixture
def stopped(lefts: dict[str, Left], tmp_path: Path) -> Left:
    return lefts["stopped"].copy(tmp_path / "stopped")


def audit(left: Left) -> list[Violation]:
    return audit_directories(left.place / "data")


def change(left: Left, broker: int, **changes: str) -> None:
    """Let a meta.properties say something else, or nothing where it is empty."""
    path = left.place / "data" / f"broker-{broker}" / "meta.properties"
    changed = {name.replace("_", "."): text for name, text in changes.items()}
    properties = decode_properties(path.read_bytes()) | changed
    path.write_bytes(encode_properties({k: text for k, text in properties.items() if text}))


def test_nothing_is_found_where_topics_are_deleted_and_brokers_end(lefts: dict[str, Left]) -> None:
    for left in lefts.values():
        assert unexplained(audit(left)) == []
    assert audit(lefts["running"]) == []
    assert audit(lefts["stopped"]) == []


def test_a_directory_that_is_gone(stopped: Left) -> None:
    shutil.rmtree(stopped.log(2, "kept"))
    (found,) = audit(stopped)
    assert (found.rule, found.topic, found.broker, found.explanation) == (
        PARTITIONS,
        "kept",
        2,
        None,
    )
    (stopped.log(2, "kept").parent / ".kafka_cleanshutdown").unlink()
    (found,) = audit(stopped)
    assert found.explanation is not None


def test_a_directory_that_was_moved(stopped: Left) -> None:
    """By hand, to another one of the broker."""
    more = stopped.place / "data" / "broker-2.d1"
    more.mkdir()
    properties = decode_properties((more.parent / "broker-2" / "meta.properties").read_bytes())
    text = encode_properties({**properties, "directory.id": "AAAAAAAAAAAAAAAAAAAABw"})
    (more / "meta.properties").write_bytes(text)
    stopped.log(2, "kept").rename(more / "kept-0")
    (found,) = audit(stopped)
    assert (found.rule, found.explanation) == (PARTITIONS, f"broker 2 has it in {more}")


def test_a_broker_that_is_another(stopped: Left) -> None:
    change(stopped, 3, node_id="2")
    (found,) = audit(stopped)
    assert (found.rule, found.broker, found.explanation) == (META, 3, None)
    assert "the directory is that of broker 3" in found.message
    assert stopped.audit() == []
    change(stopped, 3, node_id="x")
    assert [each.rule for each in audit(stopped)] == [META]


def test_a_directory_id_that_is_there_twice(stopped: Left) -> None:
    path = stopped.place / "data" / "broker-1" / "meta.properties"
    change(stopped, 3, directory_id=decode_properties(path.read_bytes())["directory.id"])
    (found,) = audit(stopped)
    assert (found.rule, found.broker) == (META, 3)


def test_a_cluster_id_that_is_another(stopped: Left) -> None:
    """A topic's id that both have tells that they are of one cluster."""
    change(stopped, 3, cluster_id="another")
    (found,) = audit(stopped)
    assert (found.rule, found.broker) == (META, 3)
    assert stopped.audit() == []
    for path in (stopped.place / "data" / "broker-3").glob("*/partition.metadata"):
        path.unlink()
    with pytest.raises(UnreadableSource, match=r"logs of more than one cluster: .*another"):
        read_listings(stopped.place / "data")


def test_a_version_of_which_nothing_is_known(stopped: Left) -> None:
    change(stopped, 1, version="3")
    assert [(each.rule, each.broker) for each in audit(stopped)] == [(META, 1)]


def as_kafka(stopped: Left, to: Path) -> Path:
    """The log directories under names that say nothing."""
    to.mkdir()
    for broker, name in ((1, "a"), (2, "b"), (3, "c")):
        (stopped.place / "data" / f"broker-{broker}").rename(to / name)
    return to


def copy_node(folder: Path) -> None:
    """Let b be a as well, each with a metadata log."""
    (folder / "b" / "meta.properties").write_bytes((folder / "a" / "meta.properties").read_bytes())
    for name in "ab":
        (folder / name / "__cluster_metadata-0").mkdir()


@pytest.mark.parametrize(
    ("harm", "findings"),
    [(lambda folder: (folder / "b" / "meta.properties").unlink(), 1), (copy_node, 2)],
    ids=["missing", "twice"],
)
def test_logs_of_which_the_broker_is_not_known_are_not_read(
    stopped: Left, tmp_path: Path, harm: Callable[[Path], None], findings: int
) -> None:
    folder = as_kafka(stopped, tmp_path / "kafka")
    assert audit_directories(folder) == []
    harm(folder)
    found = audit_directories(folder)
    assert [(each.rule, each.broker) for each in found] == [(META, None)] * findings
    assert all(each.message.startswith(f"{folder / 'b'}: ") for each in found)
    assert any("are not looked at" in each.message for each in found)
    assert [each.path.name for each in find_log_dirs(folder)] == ["a", "c"]


# -- brokers that do wrong ------------------------------------------------------------------------


def test_checkpoints_that_name_what_is_deleted(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "deletions_not_checkpointed") as made:
        for topic in ("t", "u"):
            made.create(topic)
            made.produce(topic, 6)
        wait_until("it is checkpointed", lambda: is_checkpointed(made, "t"))
        delete(made, "t")
        for _ in range(2):  # a start removes what waits for it
            made.stop()
            made.start()
        made.stop()
        left = made.left("left")
    found = audit(left)
    assert {(each.rule, each.topic, each.explanation) for each in found} == {
        (PARTITIONS, "t", None)
    }


def test_directories_that_are_not_removed(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "deletions_not_finished") as made:
        made.create("t")
        made.produce("t", 3)
        delete(made, "t")
        names = (made.place / "data").glob
        wait_until("all have deleted it", lambda: len(list(names("broker-*/t-0.*-delete"))) == 3)
        made.stop()
        left = made.left("left")
    found = audit(left)
    assert [(each.rule, each.topic, each.broker) for each in found] == [
        (LEFT, "t", broker) for broker in (1, 2, 3)
    ]
    assert unexplained(found) == []


def test_brokers_that_make_their_directories_alike(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "directory_ids_alike") as made:
        made.create("t")
        made.stop()
        left = made.left("left")
    found = audit(left)
    assert [(each.rule, each.broker, each.explanation) for each in found] == [
        (META, 2, None),
        (META, 3, None),
    ]
