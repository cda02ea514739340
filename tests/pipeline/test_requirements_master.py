"""What ``--master`` may be."""

from __future__ import annotations

import socket

import pytest

from fencepost.pipeline.requirements import CannotRunError, is_local, require_master


@pytest.fixture
def refusing() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,1024]", False),
        ("yarn", False),
        ("k8s://https://there:6443", False),
    ],
)
def test_local_is_what_runs_in_the_drivers_own_jvm(master: str, local: bool) -> None:
    require_master(master)
    assert is_local(master) is local


@pytest.mark.parametrize("master", ["nonsense", "", "local[]", "host:7077", "yarn-client"])
def test_what_is_no_master_is_refused(master: str) -> None:
    with pytest.raises(CannotRunError, match=r"^--master .*: not local\[N\], spark://HOST:PORT"):
        require_master(master)


def test_a_standalone_master_has_to_answer(refusing: str) -> None:
    with pytest.raises(CannotRunError, match=f"no Spark master answers at {refusing} \\(.*refused"):
        require_master(f"spark://{refusing}")
    with pytest.raises(CannotRunError, match=r"answers at there \(not HOST:PORT\) nor :7 \(not"):
        require_master("spark://there,:7")


@pytest.mark.parametrize("address", ["there:²", "two..dots:7077", f"{'long' * 16}:7077"])
def test_an_address_that_can_not_exist_is_refused(address: str) -> None:
    with pytest.raises(CannotRunError, match=f"^no Spark master answers at {address} \\(.+\\)$"):
        require_master(f"spark://{address}")


def test_one_of_several_masters_is_enough(refusing: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        require_master(f"spark://{refusing},127.0.0.1:{held.getsockname()[1]}")
