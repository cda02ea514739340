"""Fixtures of the tests of the commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fencepost.verbs.answers import Done
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection
from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi, fake_control_api
from tests.harness.served_cluster import Cluster, serve, serving


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeControlApi]:
    """It is where commands look for their cluster."""
    with fake_control_api() as made:
        monkeypatch.setenv("FENCEPOST_CONTROL", made.url)
        yield made


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in [each for each in os.environ if each.startswith("FENCEPOST_")]:
        if name != "FENCEPOST_CONTROL":
            monkeypatch.delenv(name)
    return Shell(capsys)


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with a clock of their own."""
    with serving(tmp_path_factory.mktemp("shared") / "log", "--clock", "manual") as cluster:
        yield cluster


@pytest.fixture
def control(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where three brokers are steered, everything forgotten; broker 1 leads t-0."""
    assert shared.control is not None
    monkeypatch.setenv("FENCEPOST_CONTROL", shared.control)
    with closing(ControlConnection(shared.control)) as line:
        line.call(VERBS["reset"], Done, {}, {})
    _create(shared)
    return shared.control


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """As `control`, of this test's own: nothing has happened in it before."""
    cluster = serve(tmp_path / "log", "--clock", "manual")
    assert cluster.control is not None
    monkeypatch.setenv("FENCEPOST_CONTROL", cluster.control)
    _create(cluster)
    yield cluster.control
    cluster.stop()


def _create(cluster: Cluster) -> None:
    topic = {"Name": "t", "NumPartitions": -1, "ReplicationFactor": -1}
    assignment = {"PartitionIndex": 0, "BrokerIds": [1, 2, 3]}
    body = {"Topics": [{**topic, "Assignments": [assignment]}], "timeoutMs": 20_000}
    with cluster.connect() as connection:
        answer = connection.call("CreateTopics", 7, body)
    assert answer["Topics"][0]["ErrorCode"] == 0, answer
