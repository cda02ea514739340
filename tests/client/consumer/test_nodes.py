from __future__ import annotations

import pytest

from fencepost.client.consumer.config import make_config
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.requests import Turn
from fencepost.client.errors import Disconnected, NotServed
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

METADATA, FETCH = BY_NAME["metadata"], BY_NAME["fetch"]
BOOTSTRAP = {-1: ("one", 9001), -2: ("two", 9002)}


class Told:
    """Nodes, and the error that they told of."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.nodes = Nodes(BOOTSTRAP, make_config(), self._fail)

    def _fail(self, error: Exception) -> None:
        self.error = error

    def serve(self, node: int, low: int, high: int, *, now: int = 0) -> None:
        """The node answers that it serves these versions of Metadata."""
        assert self.nodes.version(node, METADATA) is None
        turn = Turn(now=now)
        self.nodes.run(turn)
        (request,) = [each for each in turn.requests if each.node == node]
        served = ApiVersion(api_key=METADATA.key, min_version=low, max_version=high)
        request.on_answer(ApiVersionsResponse(api_keys=(served,)), now)


def test_versions_are_asked_for_once_and_the_highest_common_one_is_taken() -> None:
    told = Told()
    told.serve(-1, 0, 5)
    assert told.nodes.version(-1, METADATA) == 5
    assert told.nodes.version(-1, METADATA, at_most=3) == 3
    told.serve(-2, 3, 99)
    assert told.nodes.version(-2, METADATA) == METADATA.max_version


def test_a_broker_without_a_common_version_does_not_serve_it() -> None:
    told = Told()
    told.serve(-1, 90, 99)
    with pytest.raises(NotServed, match="serves no version of Metadata"):
        told.nodes.version(-1, METADATA)
    with pytest.raises(NotServed, match="serves no version of Fetch"):
        told.nodes.version(-1, FETCH)


def test_versions_are_asked_for_again_after_a_node_was_lost() -> None:
    told = Told()
    told.serve(-1, 0, 5)
    told.nodes.failed(-1, 10)
    assert told.nodes.version(-1, METADATA) is None
    early = Turn(now=11)
    told.nodes.run(early)
    assert early.requests == []
    assert early.wake_at == 60
    told.serve(-1, 0, 6, now=60)
    assert told.nodes.version(-1, METADATA) == 6


def test_requests_that_fail_together_are_one_failure() -> None:
    told = Told()
    for _ in range(5):
        told.nodes.failed(-1, 10)
    turn = Turn(now=10)
    assert not told.nodes.is_ready(-1, turn)
    assert turn.wake_at == 60


def test_each_is_chosen_in_its_turn_known_ones_first() -> None:
    told = Told()
    for node in (-1, -2):
        told.serve(node, 0, 5)
    turn = Turn(now=0)
    assert [told.nodes.choose(METADATA, turn) for _ in range(3)] == [(-1, 5), (-2, 5), (-1, 5)]
    told.nodes.learn({7: ("seven", 9007)})
    assert told.nodes.address(7) == ("seven", 9007)
    assert told.nodes.address(-1) == ("one", 9001)
    assert told.nodes.address(8) is None
    told.nodes.choose(METADATA, turn)  # its versions are not known yet
    told.serve(7, 0, 4)
    assert told.nodes.choose(METADATA, turn) == (7, 4)


def test_one_that_does_not_answer_is_passed_over_after_a_while() -> None:
    told = Told()
    turn = Turn(now=0)
    assert told.nodes.choose(METADATA, turn) is None
    told.nodes.run(turn)
    assert [each.node for each in turn.requests] == [-1]
    assert told.nodes.choose(METADATA, Turn(now=999)) is None
    told.nodes.choose(METADATA, Turn(now=1_000))
    later = Turn(now=1_000)
    told.nodes.run(later)
    assert [each.node for each in later.requests] == [-2]


def test_none_is_chosen_while_all_are_lost() -> None:
    told = Told()
    for node in BOOTSTRAP:
        told.nodes.failed(node, 0)
    assert told.nodes.choose(METADATA, Turn(now=1)) is None


def test_a_refused_question_for_versions_ends_the_consumer() -> None:
    told = Told()
    told.nodes.version(-1, METADATA)
    turn = Turn(now=0)
    told.nodes.run(turn)
    turn.requests[0].on_answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), 0)
    assert "UNSUPPORTED_VERSION to ApiVersions" in str(told.error)


@pytest.mark.parametrize("error", [NotServed("no dialect"), Disconnected("lost")])
def test_only_a_broker_that_can_not_serve_it_ends_the_consumer(
    error: NotServed | Disconnected,
) -> None:
    told = Told()
    told.nodes.version(-1, METADATA)
    turn = Turn(now=0)
    told.nodes.run(turn)
    turn.requests[0].on_failure(error, 0)
    assert told.error is (error if isinstance(error, NotServed) else None)
