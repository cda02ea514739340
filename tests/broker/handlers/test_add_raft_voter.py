"""AddRaftVoter: no controller but the cluster's own is ever reached, and all else is refused."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from fencepost.broker.controller.quorum import replica_key
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tests.harness.driver import Driver, Message, versions

DIRECTORY: Final = UUID("ab" * 16)
HERE: Final = Listener(name="CONTROLLER", host="127.0.0.1", port=9093)


def add(
    driver: Driver,
    voter_id: int = 3001,
    directory: UUID | None = DIRECTORY,
    listeners: tuple[Listener, ...] = (HERE,),
    *,
    cluster_id: str | None = None,
    version: int = 1,
) -> Message:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=directory,
        listeners=listeners,
    )
    answer = driver.ask(1, "add_raft_voter", version, request)
    return answer.error_code, answer.error_message


@pytest.mark.parametrize("version", versions("add_raft_voter"))
def test_a_controller_that_is_not_reached_is_no_voter(version: int) -> None:
    driver = Driver(1, controller_ids=[3000])
    assert add(driver, version=version) == (
        ErrorCode.REQUEST_TIMED_OUT,
        "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
    )
    own = driver.cluster.controller.image.cluster_id
    assert add(driver, cluster_id=own, version=version) == add(driver, version=version)


def test_a_voter_is_none_a_second_time() -> None:
    driver = Driver(1, controller_ids=[3000, 3001])
    image = driver.cluster.controller.image
    first, second = (replica_key(image, node_id) for node_id in (3000, 3001))
    assert first.directory_id != second.directory_id
    assert add(driver, 3001) == (
        ErrorCode.DUPLICATE_VOTER,
        (
            f"The voter id for ReplicaKey(id=3001, directoryId={format_uuid(DIRECTORY)}) is "
            f"already part of the set of voters [{first}, {second}]."
        ),
    )


def test_another_cluster_is_refused_before_all_else() -> None:
    driver = Driver(1)
    own = driver.cluster.controller.image.cluster_id
    assert add(driver, -1, None, (), cluster_id="nope") == (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        f'The given id "nope" doesn\'t match the cluster id "{own}"',
    )


@pytest.mark.parametrize(("voter_id", "directory"), [(-1, DIRECTORY), (3001, None)])
def test_a_voter_has_an_id_and_a_directory(voter_id: int, directory: UUID | None) -> None:
    assert add(Driver(1), voter_id, directory, ()) == (
        ErrorCode.INVALID_REQUEST,
        "Add voter request didn't include a valid voter",
    )


@pytest.mark.parametrize(
    ("listeners", "told"),
    [
        ((), ""),
        (
            (Listener(name="OTHER", host="h", port=1), Listener(name="X", host="", port=2)),
            "ListenerName(OTHER)=h/<unresolved>:1, ListenerName(X)=/<unresolved>:2",
        ),
    ],
)
def test_a_voter_has_an_endpoint_for_the_other_controllers(
    listeners: tuple[Listener, ...], told: str
) -> None:
    assert add(Driver(1), 1, listeners=listeners) == (
        ErrorCode.INVALID_REQUEST,
        (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{told}}})) for "
            "the default listener ListenerName(CONTROLLER)"
        ),
    )


def test_no_voter_comes_with_kraft_version_0() -> None:
    driver = Driver(1, controller_ids=[3000], features={"kraft.version": 0})
    assert add(driver) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "Cluster doesn't support adding voter because the kraft.version feature is 0",
    )
