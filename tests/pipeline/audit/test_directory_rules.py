"""What the rules about log directories make of listings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from fencepost.pipeline.audit import directory_task
from fencepost.pipeline.audit.directory_rule import DirectoryListing, DirectoryRule
from fencepost.pipeline.audit.directory_task import DirectoryResult, check_directories
from fencepost.pipeline.audit.rule import Severity, Violation
from fencepost.storage.formats.checkpoints import encode_offsets, encode_properties
from fencepost.storage.formats.file_names import deleted_directory_name

META: Final = "meta-properties"
PARTITIONS: Final = "partition-directories"
LEFT: Final = "leftover-directories"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
UNIQUE: Final = "0123456789abcdef0123456789abcdef"


def properties(broker: int = 1, directory: str = "A", **other: str) -> bytes:
    usual = {"version": "1", "cluster.id": "c", "node.id": str(broker), "directory.id": directory}
    changed = usual | {name.replace("_", "."): text for name, text in other.items()}
    return encode_properties({name: text for name, text in changed.items() if text})


def listing(
    path: str = "/a",
    *directories: str,
    broker: int | None = 1,
    clean: bool = True,
    named: int | None = None,
    meta: bytes | None = b"",
    **checkpoints: Mapping[tuple[str, int], int],
) -> DirectoryListing:
    """:param meta: Of ``meta.properties``; None without it."""
    names = {"high": HIGH_WATERMARKS, "recovery": RECOVERY_POINTS, "starts": LOG_STARTS}
    files = {names[name]: encode_offsets(offsets) for name, offsets in checkpoints.items()}
    if meta is not None:
        files["meta.properties"] = meta or properties(broker or 0, path)
    return DirectoryListing(
        path=path,
        broker=broker,
        named_broker=named,
        clean=clean,
        directories=directories,
        files=files,
    )


def judge(rule: str, *listings: DirectoryListing) -> list[Violation]:
    result = check_directories(listings, rules=(rule,))
    assert result.failures == ()
    return list(result.violations)


def told(found: Sequence[Violation]) -> list[tuple[str | None, int | None, bool]]:
    """Topic, partition, and whether there is an explanation."""
    return [(each.topic, each.partition, each.explanation is not None) for each in found]


# -- partition-directories ------------------------------------------------------------------------

NAMED: Final[Any] = {"recovery": {("t", 0): 7, ("u", 1): 3}}


@pytest.mark.parametrize("checkpoint", ["high", "recovery", "starts"])
def test_a_directory_that_is_gone(checkpoint: str) -> None:
    named: Any = {checkpoint: {("t", 0): 7, ("u", 1): 3}}
    (found,) = judge(PARTITIONS, listing("/a", "u-1", "other", **named))
    assert (found.topic, found.partition, found.offset, found.broker) == ("t", 0, 7, 1)
    assert found.explanation is None
    assert found.message.startswith("/a: there is no t-0, which ")


def test_one_finding_for_all_that_name_it() -> None:
    named = listing("/a", "u-1", high={("t", 0): 5}, recovery={("t", 0): 7}, starts={("t", 0): 2})
    (found,) = judge(PARTITIONS, named)
    assert found.offset == 7
    assert f"{RECOVERY_POINTS}, {HIGH_WATERMARKS} and {LOG_STARTS} name" in found.message


def test_nothing_is_gone() -> None:
    assert judge(PARTITIONS, listing("/a", "t-0", "u-1", **NAMED)) == []
    assert judge(PARTITIONS, listing("/a", f"t-0.{UNIQUE}-future", "u-1", **NAMED)) == []
    assert judge(PARTITIONS, listing("/a", recovery={("__cluster_metadata", 0): 7})) == []
    assert judge(PARTITIONS, listing()) == []


@pytest.mark.parametrize("state", ["delete", "stray"])
@pytest.mark.parametrize("clean", [True, False])
def test_what_is_there_under_another_name_is_not_gone(state: str, clean: bool) -> None:
    there = listing("/a", f"t-0.{UNIQUE}-{state}", "u-1", clean=clean, **NAMED)
    assert judge(PARTITIONS, there) == []
    of_another = listing("/a", f"t-1.{UNIQUE}-{state}", f"tt-0.{UNIQUE}-{state}", "u-1", **NAMED)
    assert told(judge(PARTITIONS, of_another)) == [("t", 0, False)]


def test_a_name_that_is_cut_short() -> None:
    topic = "t" * 249
    name = deleted_directory_name(topic, 0, UUID(UNIQUE))
    assert len(name) == 255
    there = listing("/a", name, "u-1", recovery={(topic, 0): 7})
    assert judge(PARTITIONS, there) == []
    assert told(judge(LEFT, there)) == [(None, None, True)]


def test_a_broker_that_did_not_end_in_order() -> None:
    (found,) = judge(PARTITIONS, listing("/a", "u-1", clean=False, **NAMED))
    assert "a topic that was deleted, or a replica that was moved" in (found.explanation or "")


def test_another_directory_of_the_broker_has_it() -> None:
    one = listing("/a", "u-1", **NAMED)
    assert told(judge(PARTITIONS, one, listing("/b", "t-0", broker=2))) == [("t", 0, False)]
    (found,) = judge(PARTITIONS, one, listing("/b", "t-0"))
    assert found.explanation == "broker 1 has it in /b"


def test_a_directory_without_a_partition_has_high_watermarks_of_before() -> None:
    """Kafka does not write the file any more, but the other two."""
    assert told(judge(PARTITIONS, listing(high={("t", 0): 7}))) == [("t", 0, True)]
    assert told(judge(PARTITIONS, listing(recovery={("t", 0): 7}))) == [("t", 0, False)]
    assert told(judge(PARTITIONS, listing("/a", "u-0", high={("t", 0): 7}))) == [("t", 0, False)]


def test_a_checkpoint_that_can_not_be_read_names_nothing() -> None:
    there = listing()
    broken = DirectoryListing(
        path="/a", broker=1, clean=True, files={**there.files, RECOVERY_POINTS: b"nonsense"}
    )
    assert judge(PARTITIONS, broken) == []


# -- leftover-directories -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "restart"),
    [("delete", "removes it"), ("future", "goes on with the move"), ("stray", "keeps it")],
)
def test_what_a_restart_does(state: str, restart: str) -> None:
    (found,) = judge(LEFT, listing("/a", "t-0", f"u-1.{UNIQUE}-{state}", "x", "a.b-delete"))
    assert (found.topic, found.partition, found.broker) == ("u", 1, 1)
    assert restart in (found.explanation or "")


# -- meta-properties ------------------------------------------------------------------------------


def test_brokers_with_several_directories() -> None:
    ones = (listing(path, broker=1) for path in ("/a", "/b"))
    twos = (listing(path, broker=2) for path in ("/c", "/d"))
    assert judge(META, *ones, *twos) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "7"}, "version=7, and there are 0 and 1"),
        ({"cluster.id": ""}, "says no cluster.id"),
        ({"cluster.id": "d"}, "cluster.id=d, and 2 others say c"),
        ({"node.id": ""}, "says no node.id"),
        ({"node.id": "4"}, "node.id=4, and the directory is that of broker 3"),
        ({"directory.id": "/a"}, "directory.id=/a, and so does that of /a"),
    ],
)
def test_what_contradicts_the_others(changes: dict[str, str], message: str) -> None:
    odd = {name.replace(".", "_"): text for name, text in changes.items()}
    made = properties(3, **{"directory": "/c", **odd})
    others = (listing("/a", broker=1), listing("/b", broker=2))
    (found,) = judge(META, *others, listing("/c", broker=3, named=3, meta=made))
    assert (found.broker, found.topic, found.partition) == (3, None, None)
    assert found.message.startswith("/c: meta.properties ")
    assert message in found.message
    assert found.explanation is None


def test_what_was_written_without_kraft() -> None:
    old = encode_properties({"version": "0", "cluster.id": "c", "broker.id": "2"})
    assert judge(META, listing("/a", broker=2, meta=old)) == []
    (found,) = judge(META, listing("/a"), listing("/b", broker=2, meta=old))
    assert found.explanation is not None
    assert "KRaft" in found.explanation


@pytest.mark.parametrize(("meta", "said"), [(None, "is not there"), (b"#\n", "is empty")])
def test_a_file_that_is_not_there(meta: bytes | None, said: str) -> None:
    missing = listing("/b", "t-0", broker=2, meta=meta)
    (found,) = judge(META, listing("/a"), missing)
    assert said in found.message
    assert "another log directory has one" in found.message
    assert "not looked at" not in found.message
    assert judge(META, missing) == []
    unknown = listing("/b", "t-0", broker=None, meta=meta)
    (found,) = judge(META, listing("/a"), unknown)
    assert "not looked at" in found.message


def test_a_directory_that_was_just_made() -> None:
    assert judge(META, listing("/a"), listing("/b", broker=2, meta=None)) == []


def test_two_nodes_of_one_id() -> None:
    one = listing("/a", "__cluster_metadata-0")
    same = listing("/b", "__cluster_metadata-0", broker=None, meta=properties(1, "/b"))
    (found,) = judge(META, one, same)
    assert found.message.startswith("/b: ")
    assert "so does that of /a" in found.message
    assert "two nodes" in found.message


# -- all of them ----------------------------------------------------------------------------------


def test_findings_of_a_topic() -> None:
    there = (
        listing("/a", f"t-0.{UNIQUE}-delete", f"u-0.{UNIQUE}-delete"),
        listing("/b", broker=2, meta=properties(2, "/a")),
    )
    everything = check_directories(there)
    assert everything.directories == 2
    assert told(everything.violations) == [("t", 0, True), ("u", 0, True), (None, None, False)]
    counts = {each.rule: (each.found, each.explained) for each in everything.rule_counts}
    assert counts == {META: (1, 0), PARTITIONS: (0, 0), LEFT: (2, 2)}
    assert [(e.rule, e.number, e.findings, e.severity) for e in everything.incidents] == [
        (LEFT, -1, 2, "rebuilt"),
        (META, -2, 1, "damage"),
    ]
    assert [each.incident for each in everything.violations] == [-1, -1, -2]
    assert told(check_directories(there, topics=("u",)).violations) == [("u", 0, True)]
    assert told(check_directories(there, rules=(META,)).violations) == [(None, None, False)]
    assert check_directories(there, rules=("torn-tail",)) == DirectoryResult(directories=2)


def test_a_rule_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_evidence: object) -> Iterator[Violation]:
        raise ZeroDivisionError

    rule = DirectoryRule(
        name="odd",
        about="",
        source="",
        order=1,
        severity=Severity.DAMAGE,
        remedy="",
        check=fail,
    )
    monkeypatch.setattr(directory_task, "DIRECTORY_RULES", {"odd": rule})
    result = check_directories([listing()])
    (failure,) = result.failures
    assert (failure.rule, failure.where, failure.last_line) == (
        "odd",
        "log directories",
        "ZeroDivisionError",
    )
    assert result.rule_counts == ()
