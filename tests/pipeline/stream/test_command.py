"""``fencepost stream`` as typed in a shell, but in this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from fencepost.cli.commands import run
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.pipeline.stream.ground import CLIENT, TOPIC, WAIT_S, Ground, numbered
from tests.pipeline.stream.test_going_back import elect, lag, refusals
from tests.pipeline.stream.test_truncation import lose, read_what_will_be_lost

NOW = ("--trigger", "available-now")
QUICKLY = ("--option", "fetchOffset.retryIntervalMs=10")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code, and all that was printed."""
    capsys.readouterr()
    code = run(["stream", *arguments])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_failure_is_one_line_and_the_exit_code(
    field: Ground, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_what_will_be_lost(field)
    lose(field)
    field.send("b", 10, 15)
    monkeypatch.setenv("FENCEPOST_BOOTSTRAP", field.cluster.bootstrap)
    monkeypatch.setenv("FENCEPOST_CHECKPOINT", str(field.checkpoint))
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    write = ("to-parquet", TOPIC, str(field.files), *NOW, *QUICKLY)
    lost = "fencepost: data loss: Partition orders-0 offset was changed from 20 to 15\n"
    assert told(capsys, *write) == (1, lost)
    went_back = "batch 1: 0 records, orders-0 went back from 20 to 15\n"
    assert told(capsys, *write, "--on-data-loss", "go-on") == (0, went_back)
    assert told(capsys, *write) == (0, "")
    field.send("b", 15, 17)
    partition = '{"topic": "orders", "partition": 0, "from": 15, "to": 17}'
    line = f'{{"batch": 2, "records": 2, "partitions": [{partition}]}}\n'
    assert told(capsys, *write, "--json") == (0, line)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert field.read() == sorted([*numbered("a", 0, 20), *numbered("b", 15, 17)])


def test_the_checkpoint_is_in_the_directory_where_none_is_named(
    field: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    field.send("a", 0, 3)
    write = ("to-parquet", TOPIC, str(field.files), "--bootstrap", field.cluster.bootstrap, *NOW)
    nothing = "batch 0: 0 records, orders-0 to 3\n"
    assert told(capsys, *write, "--from", "latest") == (0, nothing)
    field.send("a", 3, 5)
    assert told(capsys, *write) == (0, "batch 1: 2 records, orders-0 3..5\n")
    assert field.read() == numbered("a", 3, 5)
    # Spark would take its first batches for those that are there, and leave them out.
    elsewhere = str(field.folder / "elsewhere")
    code, refused = told(capsys, *write, "--checkpoint", elsewhere)
    assert code == 2
    assert f"has batches up to 1 that the checkpoint {elsewhere} does not know" in refused
    # What is the connector's own business is not to be set.
    code, refused = told(capsys, *write, "--option", "kafka.auto.offset.reset=latest")
    assert (code, refused.count("\n")) == (2, 1)
    assert refused.startswith("fencepost: Spark refuses the query: ")
    assert "auto.offset.reset" in refused


def test_files_where_spark_cannot_write(field: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    write = ("to-parquet", TOPIC, "nowhere://x/files", "--bootstrap", field.cluster.bootstrap)
    code, refused = told(capsys, *write, *NOW)
    assert (code, refused.count("\n")) == (2, 1)
    assert refused.startswith("fencepost: Spark refuses the query: UnsupportedFileSystemException")
    assert '"nowhere"' in refused


def test_ctrl_c_ends_it_well(field: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    field.send("a", 0, 3)
    done = field.files / "_checkpoint" / "commits" / "0"
    write = ("to-parquet", TOPIC, str(field.files), "--bootstrap", field.cluster.bootstrap)
    with signalled(signal.SIGINT, done.exists):
        assert told(capsys, *write) == (0, "batch 0: 3 records, orders-0 to 3\n")


def test_sigterm_ends_it_also_while_the_brokers_let_it_wait(
    field: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    field.send("a", 0, 10)
    lag(field)
    elect(field)
    write = ("to-parquet", TOPIC, str(field.files), "--bootstrap", field.cluster.bootstrap)
    client = ("--option", f"kafka.client.id={CLIENT}")
    with signalled(signal.SIGTERM, lambda: refusals(field) > 1):
        assert told(capsys, *write, *client) == (0, "")


@contextmanager
def signalled(number: signal.Signals, when: Callable[[], bool]) -> Iterator[None]:
    """Send this process a signal as soon as something is so."""

    def send() -> None:
        wait_until("it is time", when, WAIT_S)
        os.kill(os.getpid(), number)

    sender = Thread(target=send)
    sender.start()
    yield
    sender.join()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("to-parquet", "a,,b", "out"), "'a,,b' is not a list of topics, such as orders,payments"),
        (("to-parquet", "a", "out", "--option", "x"), "--option: 'x' is not KEY=VALUE"),
        (
            ("to-parquet", "a", "out", "--option", "x=1", "--option", "x=2"),
            "--option: 'x=2' gives x a second time",
        ),
        (("to-parquet", "a", "out", "--trigger", "once"), "'once' is not one of"),
        (("to-topic", "a", "b"), "--checkpoint is missing"),
        (("to-topic", "a", "b", "--checkpoint", "c", "--window", "0"), "--window"),
    ],
)
def test_what_is_asked_wrongly(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, printed = told(capsys, *arguments, "--bootstrap", "127.0.0.1:1")
    assert (code, printed.count("\n")) == (2, 1)
    assert said in printed


def test_what_is_not_there(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topic = cluster.create_topic("stream")
    at, out = cluster.bootstrap, str(tmp_path / "out")
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoint"))
    refused = told(capsys, "to-parquet", topic, out, "--bootstrap", "127.0.0.1:1")
    assert refused[0] == 2
    assert refused[1].startswith("fencepost: no broker answers at 127.0.0.1:1: ")
    nowhere = told(capsys, "to-parquet", topic, out, "--bootstrap", "nowhere")
    assert nowhere[0] == 2
    assert nowhere[1].startswith("fencepost: --bootstrap: ")
    missing = told(capsys, "to-parquet", f"{topic},missing", out, "--bootstrap", at)
    assert missing == (2, f"fencepost: there is no topic missing at {at}\n")
    missing = told(capsys, "to-topic", topic, "missing", "--bootstrap", at, *checkpoint)
    assert missing == (2, f"fencepost: there is no topic missing at {at}\n")
    none = told(capsys, "to-parquet", "no topic", out, "--bootstrap", at)
    assert none == (2, "fencepost: topic no topic: INVALID_TOPIC_EXCEPTION\n")
    same = told(capsys, "to-topic", topic, topic, "--bootstrap", at, *checkpoint)
    assert same == (2, f"fencepost: {topic} is read, and cannot be written to as well\n")
    assert not (tmp_path / "out").exists()
