"""The processes behind the fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.testing import servers
from fencepost.testing.servers import ServerPool, read_options
from fencepost.verbs.remote import Refused
from fencepost.verbs.serving import CannotServe


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[ServerPool]:
    started = ServerPool(tmp_path)
    yield started
    started.stop()


def test_a_process_is_kept_for_the_next_with_the_same_options(kept: ServerPool) -> None:
    first = kept.fresh(read_options({"topics": ["one"]}, None))
    second = kept.fresh(read_options({"topics": ["two"]}, None))
    assert second is first
    assert [topic.name for topic in first.cluster.topics()] == ["two"]
    other = kept.fresh(read_options({"brokers": 2}, None))
    assert other is not first
    assert kept.fresh(read_options({}, None)) is first


def test_only_so_many_are_kept(kept: ServerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_KEPT", 2)
    one, two = (kept.fresh(read_options({"brokers": count}, None)) for count in (1, 2))
    kept.fresh(read_options({"brokers": 1}, None))
    three = kept.fresh(read_options({"brokers": 3}, None))
    assert [each.serving.is_running for each in (one, two, three)] == [True, False, True]
    again = kept.fresh(read_options({"brokers": 2}, None))
    assert again is not two
    assert not one.serving.is_running


def test_one_that_has_ended_is_replaced(kept: ServerPool) -> None:
    first = kept.fresh(read_options({}, None))
    first.serving.child.kill()
    first.serving.child.wait()
    second = kept.fresh(read_options({}, None))
    assert second is not first
    assert second.cluster.topics() == []


def test_what_serve_refuses_is_said(kept: ServerPool) -> None:
    with pytest.raises(CannotServe, match=r"^fencepost serve: Invalid value x for .*INT$"):
        kept.fresh(read_options({"configs": {"num.partitions": "x"}}, None))
    with pytest.raises(Refused, match="INVALID_REPLICATION_FACTOR"):
        kept.fresh(read_options({"topics": ["orders:1:3"]}, None))
    assert kept.fresh(read_options({}, None)).cluster.topics() == []


def test_all_stop(tmp_path: Path) -> None:
    started = ServerPool(tmp_path)
    both = [started.dedicated(read_options({}, None)) for _ in range(2)]
    assert both[0].serving.pid != both[1].serving.pid
    started.stop()
    assert not any(each.serving.is_running for each in both)
