"""The error codes in an answer are found wherever its API has them."""

from __future__ import annotations

from fencepost.protocol.apis import APIS, BY_NAME
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.messages.api_versions import ApiVersionsResponse
from fencepost.protocol.messages.list_groups import ListGroupsResponse
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


def metadata(*codes: int) -> MetadataResponse:
    partitions = tuple(
        MetadataResponsePartition(error_code=code, partition_index=i)
        for i, code in enumerate(codes[1:])
    )
    return MetadataResponse(
        topics=(MetadataResponseTopic(error_code=codes[0], name="t", partitions=partitions),)
    )


def test_codes_of_every_level_are_found_in_order() -> None:
    assert error_code_finder(BY_NAME["metadata"], 9)(metadata(3, 0, 5, 5)) == (3, 5, 5)
    assert error_code_finder(BY_NAME["metadata"], 9)(metadata(0, 0)) == ()
    data = PartitionProduceResponse(index=0, error_code=6)
    produced = ProduceResponse(
        responses=(TopicProduceResponse(name="t", partition_responses=(data,)),)
    )
    for version in range(3, 14):
        assert error_code_finder(BY_NAME["produce"], version)(produced) == (6,)
    assert error_code_finder(BY_NAME["list_groups"], 3)(ListGroupsResponse(error_code=15)) == (15,)


def test_a_code_that_the_version_does_not_have_is_not_in_the_answer() -> None:
    answer = MetadataResponse(error_code=29)
    assert error_code_finder(BY_NAME["metadata"], 12)(answer) == ()
    assert error_code_finder(BY_NAME["metadata"], 13)(answer) == (29,)


def test_every_answer_that_is_served_can_be_looked_through() -> None:
    for api in APIS:
        for version in range(api.min_version, api.max_version + 1):
            assert error_code_finder(api, version)(_Anything()) in ((), (1,)), api.title
    assert error_code_finder(BY_NAME["api_versions"], 0)(ApiVersionsResponse(error_code=35)) == (
        35,
    )


class _Anything:
    """An answer without elements."""

    error_code = 1

    def __getattr__(self, name: str) -> tuple[object, ...]:
        return ()
