"""The command line's process ends, in order or not, and the next goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.durability.conftest import Serve
from tests.harness import require
from tests.harness.confluent import consumer, delivered, read, send
from tests.harness.durable_cluster import DurableCluster

End = Callable[[DurableCluster], None]
ENDS = pytest.mark.parametrize("end", [DurableCluster.stop, DurableCluster.kill])


def ask(served: DurableCluster, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401  # JSON
    """GET, or POST with a body."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(served.ready["control"] + path, data, {"content-type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def partition(served: DurableCluster, topic: str, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = ask(served, f"/v1/topics/{topic}/partitions/{index}")
    return found


@ENDS
def test_records_groups_and_configs_are_there_again(serve: Serve, end: End) -> None:
    served = serve("--topic", "orders:2:3")
    served.start()
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    for future in admin.create_topics(
        [NewTopic("kept", 1, 2, config={"retention.ms": "99"})]
    ).values():
        future.result(30)
    entry = ConfigEntry("max.message.bytes", "4321", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    values = [b"%d" % number for number in range(100)]
    delivered(send(served.cluster, "orders", values, partitions=2, enable_idempotence="true"))
    with consumer(served.cluster, group_id="shipping") as reader:
        reader.commit(offsets=[TopicPartition("orders", 0, 17)], asynchronous=False)
    topics, before = ask(served, "/v1/topics"), partition(served, "orders")

    end(served)
    served.start()

    assert sorted(ask(served, "/v1/topics"), key=str) == sorted(topics, key=str)
    after = partition(served, "orders")
    assert after["topic_id"] == before["topic_id"]
    assert after["leader_epoch"] == before["leader_epoch"] + 1
    assert after["high_watermark"] == 50
    assert [r["log_end_offset"] for r in after["replicas"]] == [50, 50, 50]
    with consumer(served.cluster, group_id="shipping") as reader:
        (place,) = reader.committed([TopicPartition("orders", 0)], timeout=30)
        assert place.offset == 17
    with consumer(served.cluster) as reader:
        reader.assign([TopicPartition("orders", p, 0) for p in (0, 1)])
        found = sorted(int(message.value() or b"") for message in read(reader, 100))
        assert found == list(range(100))
    delivered(send(served.cluster, "orders", [b"more"]))
    assert partition(served, "orders")["high_watermark"] == 51
    opened = served.found()
    assert opened["clean"] is (end is DurableCluster.stop)


def test_kcat_reads_what_it_wrote_before(serve: Serve) -> None:
    kcat = require.tool("kcat")
    served = serve("--topic", "t", brokers=1)
    served.start()
    at = [kcat, "-b", served.bootstrap, "-t", "t"]
    subprocess.run([*at, "-P"], input=b"one\ntwo\n", check=True, timeout=30)
    served.kill()
    served.start()
    wrote = subprocess.run(
        [*at, "-C", "-e", "-q", "-o", "beginning"], check=True, timeout=30, capture_output=True
    )
    assert wrote.stdout == b"one\ntwo\n"


def test_what_recovery_cut_and_rebuilt_is_logged(serve: Serve) -> None:
    served = serve("--topic", "t", brokers=1)
    served.start()
    delivered(send(served.cluster, "t", [b"a"]))
    served.kill()
    log = served.directory / "broker-1" / "t-0" / f"{0:020d}.log"
    whole = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"torn")
    with (served.directory / "registry.log").open("ab") as file:
        file.write(b"torn too")
    served.start()
    opened = served.found()
    assert (opened["clean"], opened["recovered"]) == (False, 1)
    assert opened["registry_cut_bytes"] == len(b"torn too")
    (recovered,) = served.logged("log_recovered")
    assert (recovered["broker"], recovered["log"]) == (1, "t-0")
    (cut,) = recovered["cut"]
    assert (cut["position"], cut["size"], cut["offset"]) == (whole, 4, 1)
    assert log.stat().st_size == whole


def test_a_reset_leaves_no_files_and_lasts(serve: Serve) -> None:
    served = serve("--topic", "first")
    served.start()
    send(served.cluster, "first", [b"a"])
    admin = AdminClient({"bootstrap.servers": served.bootstrap})
    admin.create_topics([NewTopic("second", 1, 3)])["second"].result(30)
    ask(served, "/v1/reset", {})
    served.kill()
    served.start()
    assert [topic["name"] for topic in ask(served, "/v1/topics")] == ["first"]
    assert partition(served, "first")["replicas"][0]["log_end_offset"] == 0
    served.stop()
    assert not list(served.directory.glob("broker-*/second*"))


def test_another_process_and_a_smaller_cluster_are_refused_in_a_line(serve: Serve) -> None:
    served = serve()
    served.start()
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0", "--control-port", "0"]
    command += ["--data-dir", str(served.directory)]

    def refused(*options: str, **environment: str) -> str:
        done = subprocess.run(
            [*command, *options],
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, **environment},
        )
        assert (done.returncode, done.stdout) == (2, b"")
        text = done.stderr.decode()
        assert text.count("\n") == 1
        return text.removeprefix("fencepost serve: ").strip()

    where = served.directory
    assert refused() == f"{where} is in use by another process that runs"
    served.stop()
    assert refused() == (
        f"{where} holds the logs of brokers 1 to 3, and the brokers are to be 1: "
        "start with --brokers 3 or more"
    )
    file = where / "registry.log"
    assert refused("--data-dir", str(file)) == f"{file} is not a directory"
    assert "can't be used: " in refused("--data-dir", "/proc/nothing")


def test_the_environment_says_where(serve: Serve, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "fencepost", "serve", "--port", "0", "--control-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "FENCEPOST_DATA_DIR": str(tmp_path / "d"), "FENCEPOST_FSYNC": "true"},
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    assert (tmp_path / "d" / "broker-1" / ".kafka_cleanshutdown").exists()


def test_a_process_starts_soon_on_many_partitions(serve: Serve) -> None:
    served = serve("--topic", "many:2000:1", brokers=1)
    served.start()
    served.stop()
    served.start()
    opened = served.found()
    assert (opened["clean"], opened["logs"], opened["recovered"]) == (True, 2000, 0)
