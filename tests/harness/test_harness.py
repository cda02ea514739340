"""The tools of the client tests, where a fault of theirs could hide one of the server's."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from tests.harness import batches
from tests.harness.cache import made_once
from tests.harness.process import NotReadyError, start
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.wire import ZERO_UUID, Body, decode, encode, frame, varint


def test_a_missing_tool_is_skipped_by_a_user_and_fails_under_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is not installed"):
        tool("no-such-tool")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool is not installed"):
        tool("no-such-tool")


@pytest.mark.parametrize("version", range(4, 19))
def test_what_is_encoded_is_decoded(version: int) -> None:
    partition: Body = {"Partition": 3, "FetchOffset": 2**40, "PartitionMaxBytes": 7}
    topic: Body = {"Topic": "t", "TopicId": "ab" * 16, "Partitions": [partition]}
    body: Body = {"MaxWaitMs": 1, "MinBytes": 2, "Topics": [topic]}
    got = decode("FetchRequest", version, encode("FetchRequest", version, body))
    (found,) = got["Topics"]
    assert found.get("Topic", "t") == "t"
    assert found.get("TopicId", "ab" * 16) == "ab" * 16
    assert ("TopicId" in found) == (version >= 13)
    assert partition.items() <= found["Partitions"][0].items()
    assert "_TRAILING" not in got


def test_a_frame_byte_by_byte() -> None:
    wanted: Body = {"Topics": [{"Name": "t", "TopicId": ZERO_UUID}]}
    assert frame("Metadata", 1, wanted, correlation_id=5, client_id="c") == bytes.fromhex(
        "00000012"  # size
        "0003"
        "0001"
        "00000005"
        "0001"
        "63"  # key, version, correlation id, client id
        "00000001"
        "0001"
        "74"  # one topic, "t"
    )


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(KeyError, match="NoSuchField"):
        encode("MetadataRequest", 1, {"NoSuchField": 1})


@pytest.mark.parametrize(("number", "written"), [(0, "00"), (-1, "01"), (1, "02"), (300, "d804")])
def test_varints(number: int, written: str) -> None:
    assert varint(number).hex() == written


def test_batches() -> None:
    one = batches.build([(10, b"k", b"v"), (30, None, None)], base_offset=4, attributes=8)
    (found,), left = batches.parse(one + one[:-1])
    assert (found.base_offset, found.last_offset, found.records) == (4, 5, 2)
    assert (found.base_timestamp, found.max_timestamp, found.log_append_time) == (10, 30, True)
    assert left == len(one) - 1


def test_what_is_made_once_is_whole_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_TEST_CACHE", str(tmp_path / "cache"))
    recipe = tmp_path / "recipe"
    recipe.write_text("1")
    made: list[Path] = []

    def make(folder: Path) -> None:
        (folder / "part").touch()
        made.append(folder)
        if len(made) == 1:
            raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        made_once("thing", [recipe], make)
    assert list((tmp_path / "cache").iterdir()) == []
    target = made_once("thing", [recipe], make)
    assert (target / "part").exists()
    assert made_once("thing", [recipe], make) == target
    recipe.write_text("2")
    assert made_once("thing", [recipe], make) != target
    assert len(made) == 3


def test_what_two_want_at_a_time_is_made_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_TEST_CACHE", str(tmp_path / "cache"))
    recipe = tmp_path / "recipe"
    recipe.write_text(str(tmp_path))
    both, made = Barrier(2), list[Path]()

    def make(folder: Path) -> None:
        made.append(folder)
        with suppress(BrokenBarrierError):
            both.wait(0.5)  # the other would come here as well

    with ThreadPoolExecutor(2) as workers:
        wanted = [workers.submit(made_once, "thing", [recipe], make) for _ in range(2)]
        assert len({each.result() for each in wanted}) == 1
    assert len(made) == 1


def test_a_program_that_ends_badly_says_so() -> None:
    with pytest.raises(AssertionError, match=r"ended with 3, not 0[\s\S]*the reason"):
        run([sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"])
    with pytest.raises(AssertionError, match=r"ran over 0\.5 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.5)


def test_a_server_that_ends_at_once_is_not_ready(tmp_path: Path) -> None:
    script = "import sys; sys.exit('no such option')"
    server = start("server", [sys.executable, "-c", script], tmp_path / "log")
    with pytest.raises(NotReadyError, match="ended with 1\nno such option"):
        server.first_line(10)
    server.stop(expect=1)


def test_a_server_that_stops_otherwise_than_expected(tmp_path: Path) -> None:
    script = "import time; print('ready', flush=True); time.sleep(60)"
    server = start("server", [sys.executable, "-c", script], tmp_path / "log")
    assert server.first_line(10) == "ready\n"
    with pytest.raises(AssertionError, match="server ended with"):
        server.stop()
