"""A process that starts on files that miss records says so, and a forged registry is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fencepost.broker.data_dir.metadata_log import encode_line
from tests.durability.conftest import Serve
from tests.harness.confluent import delivered, read_partition, send
from tests.harness.durable_cluster import DurableCluster


def kept_events(served: DurableCluster) -> list[dict[str, object]]:
    """The events of the start."""
    with urlopen(served.ready["control"] + "/v1/events?since=0", timeout=30) as stream:
        lines = (line.decode().strip() for line in stream)
        data = (line for line in lines if not line.startswith(("id:", "event:")) and line != "")
        found = takewhile(lambda line: "replica_failed" not in line, data)
        return [json.loads(line[5:]) for line in found if line.startswith("data:")]


def test_a_lost_segment_is_told_and_the_loss_may_be_accepted(serve: Serve) -> None:
    served = serve("--topic", "t", brokers=1)
    served.start()
    delivered(send(served.cluster, "t", [b"a", b"b"]))
    served.stop()
    (served.directory / "broker-1" / "t-0" / f"{0:020d}.log").unlink()
    served.start()
    (line,) = served.logged("records_missing")
    assert (line["topic"], line["partition"], line["broker"]) == ("t", 0, 1)
    assert line["offsets"] == [[0, 1]]
    (failed,) = served.logged("replica_failed")
    assert "offsets 0 to 1 are missing" in failed["error"]
    (event,) = [each for each in kept_events(served) if each["kind"] == "records_missing"]
    assert (event["topic"], event["broker"]) == ("t", 1)
    served.stop()
    served.options = [*served.options, "--accept-data-loss"]
    served.start()
    delivered(send(served.cluster, "t", [b"c"]))
    (record,) = read_partition(served.cluster, "t", 1, start=2)
    assert (record.offset(), record.value()) == (2, b"c")


def test_a_forged_registry_is_refused_in_one_line_and_makes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    partition = [[1], [1], 1, 0, 0]
    records: list[list[Any]] = [
        ["cluster", 1, "c", 1],
        ["brokers", {"1": 1}],
        ["topic", "../../evil", "1" * 32, {}, [partition]],
    ]
    (data / "registry.log").write_bytes(encode_line(records))
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0", "--control-port", "0"]
    done = subprocess.run(
        [*command, "--data-dir", str(data)], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    text = done.stderr.decode()
    assert text.count("\n") == 1
    assert text.startswith(f"fencepost serve: {data / 'registry.log'}: line 1 ")
    assert "'../../evil' is no name of a topic" in text
    assert {path.name for path in tmp_path.iterdir()} == {"data"}
