"""RemoveRaftVoter: who votes afterwards, and what is refused."""

from __future__ import annotations

from uuid import UUID

from fencepost.broker.controller.quorum import replica_key
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.broker.handlers.test_describe_quorum import describe
from tests.harness.driver import Driver, Message

OTHER = UUID("ab" * 16)


def own_directory(driver: Driver, voter_id: int) -> UUID | None:
    return replica_key(driver.cluster.controller.image, voter_id).directory_id


def remove(
    driver: Driver, voter_id: int, directory: UUID | None, cluster_id: str | None = None
) -> Message:
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory
    )
    answer = driver.ask(2, "remove_raft_voter", 0, request)
    return answer.error_code, answer.error_message


def quorum(driver: Driver) -> tuple[int, int, list[int], list[int]]:
    """Leader, epoch, voters and observers."""
    ((partition,),) = (t.partitions for t in describe(driver, ("__cluster_metadata", (0,))).topics)
    voters = [each.replica_id for each in partition.current_voters]
    observers = [each.replica_id for each in partition.observers]
    return partition.leader_id, partition.leader_epoch, voters, observers


def test_a_voter_that_is_removed_observes() -> None:
    driver = Driver(2, controller_ids=[3000, 3001, 3002])
    assert remove(driver, 3001, own_directory(driver, 3001)) == (ErrorCode.NONE, None)
    assert quorum(driver) == (3000, 1, [3000, 3002], [3001, 1, 2])


def test_where_it_led_the_next_one_leads_in_the_next_epoch() -> None:
    driver = Driver(2, controller_ids=[3000, 3001, 3002])
    assert remove(driver, 3000, own_directory(driver, 3000)) == (ErrorCode.NONE, None)
    assert quorum(driver) == (3001, 2, [3001, 3002], [3000, 1, 2])


def test_no_voter_goes_with_kraft_version_0() -> None:
    driver = Driver(2, controller_ids=[3000, 3001], features={"kraft.version": 0})
    assert remove(driver, 3001, own_directory(driver, 3001)) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "Cluster doesn't support removing voter because the kraft.version feature is 0",
    )


def test_a_reset_brings_all_voters_back() -> None:
    driver = Driver(2, controller_ids=[3000, 3001])
    remove(driver, 3001, own_directory(driver, 3001))
    driver.cluster.reset()
    assert quorum(driver) == (3000, 1, [3000, 3001], [1, 2])


def test_the_last_voter_stays_and_so_does_one_with_another_directory() -> None:
    driver = Driver(2)
    own = replica_key(driver.cluster.controller.image, 1)
    for directory in (own.directory_id, OTHER):
        asked = own._replace(directory_id=directory)
        assert remove(driver, 1, directory) == (
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {asked} from the set of voters [{own}]",
        )
    assert quorum(driver) == (1, 1, [1], [2])


def test_what_is_no_voter_is_refused() -> None:
    driver = Driver(2)
    own = driver.cluster.controller.image.cluster_id
    problem = "Remove voter request didn't include a valid voter"
    for voter_id, directory in ((-1, OTHER), (1, None)):
        assert remove(driver, voter_id, directory) == (ErrorCode.INVALID_REQUEST, problem)
        assert remove(driver, voter_id, directory, own) == (ErrorCode.INVALID_REQUEST, problem)
        assert remove(driver, voter_id, directory, "nope") == (
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "nope" doesn\'t match the cluster id "{own}"',
        )
