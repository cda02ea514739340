"""What the process may use: the lowest limit counts, and descriptors are shared."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from fencepost.broker.server.resources import (
    CONTROL_CONNECTIONS,
    DescriptorBudget,
    TooFewDescriptors,
    available_memory,
    descriptor_budget,
    descriptor_limit,
    memory_shares,
)

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file that names the groups of the process."""
    return tmp_path / "own"


def limited(root: Path, group: str, text: str, name: str = "memory.max") -> None:
    (root / group).mkdir(parents=True, exist_ok=True)
    (root / group / name).write_text(text + "\n")


def test_without_control_groups_the_machine_is_the_limit(tmp_path: Path, own: Path) -> None:
    machine = available_memory(tmp_path, own)
    assert 64 * MIB < machine < 1 << 50
    own.write_text("0::/a\n")
    limited(tmp_path, "a", "max")
    assert available_memory(tmp_path, own) == machine
    limited(tmp_path, "a", "no number")
    assert available_memory(tmp_path, own) == machine


@pytest.mark.parametrize("group", ["a/b/c", "a/b", "a", "."])
def test_a_group_of_version_2_and_those_above_it(tmp_path: Path, own: Path, group: str) -> None:
    own.write_text("0::/a/b/c\n")
    limited(tmp_path, "a/b/c", str(30 * MIB))
    limited(tmp_path, group, str(20 * MIB))
    assert available_memory(tmp_path, own) == 20 * MIB


def test_a_container_sees_its_group_at_the_root(tmp_path: Path, own: Path) -> None:
    own.write_text("0::/docker/of/the/host\n")
    limited(tmp_path, ".", str(20 * MIB))
    assert available_memory(tmp_path, own) == 20 * MIB


def test_a_group_of_version_1(tmp_path: Path, own: Path) -> None:
    own.write_text("5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/\n")
    limited(tmp_path, "cpu/a", str(MIB), "memory.limit_in_bytes")
    limited(tmp_path, "memory", str(9223372036854771712), "memory.limit_in_bytes")
    limited(tmp_path, "memory/a", str(20 * MIB), "memory.limit_in_bytes")
    assert available_memory(tmp_path, own) == 20 * MIB


def test_the_address_space(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (30 * MIB, resource.RLIM_INFINITY))
    assert available_memory(tmp_path, own) == 30 * MIB


@pytest.mark.parametrize(
    ("available", "logs", "requests"),
    [(16 * GIB, 8 * GIB - 128 * MIB, 4 * GIB), (256 * MIB, 64 * MIB, 64 * MIB)],
)
def test_the_shares_of_what_there_is(available: int, logs: int, requests: int) -> None:
    assert memory_shares(available) == (logs, requests)
    assert logs + requests < available


# -- descriptors --------------------------------------------------------------------------------


def budget(limit: int, max_files: int) -> tuple[DescriptorBudget, list[int]]:
    sizes: list[int] = []
    made = DescriptorBudget(limit, max_files=max_files)
    made.resize_files = sizes.append
    return made, sizes


def test_files_get_what_connections_leave_and_a_quarter_at_least() -> None:
    shared, sizes = budget(100, max_files=60)
    assert shared.files == 60
    admitted = 0
    while shared.admit():
        admitted += 1
        assert admitted + shared.files <= 100
    assert (admitted, shared.files) == (75, 25)
    assert sizes == list(range(59, 24, -1)), "only when it changes"
    shared.release()
    assert shared.files == 26
    assert shared.admit()
    assert not shared.admit()


def test_without_files_connections_get_all() -> None:
    shared, _ = budget(10, max_files=0)
    assert [shared.admit() for _ in range(11)] == [True] * 10 + [False]


def test_the_control_api_is_reached_when_clients_have_taken_all() -> None:
    shared, _ = budget(20, max_files=0)
    while shared.admit():
        pass
    assert [shared.admit_control() for _ in range(CONTROL_CONNECTIONS)] == [
        True
    ] * CONTROL_CONNECTIONS
    assert not shared.admit_control()
    shared.release()
    assert shared.admit_control()
    assert not shared.admit()
    shared.release_control()
    assert shared.admit()


@pytest.mark.parametrize("has_files", [True, False])
@pytest.mark.parametrize("brokers", [1, 3, 50])
def test_a_server_keeps_a_reserve(brokers: int, has_files: bool) -> None:
    shared = descriptor_budget(256, brokers=brokers, has_files=has_files)
    count = 0
    while shared.admit():
        count += 1
    assert count + shared.files + 3 * brokers + CONTROL_CONNECTIONS + 30 < 256
    assert count > 20


def test_a_limit_that_is_too_low_is_refused_with_what_is_needed() -> None:
    with pytest.raises(TooFewDescriptors, match=r"64 files and connections, and 3 brokers need 81"):
        descriptor_budget(64, brokers=3, has_files=False)


def test_the_soft_limit_counts_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert descriptor_limit() == before[0]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    monkeypatch.setattr(
        resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    assert descriptor_limit() > 100_000
