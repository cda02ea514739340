"""Metadata of encoded topics: the very bytes of topics that are described as messages."""

from __future__ import annotations

from uuid import UUID

import pytest

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.handlers import metadata
from fencepost.broker.metadata.topic_fragments import TopicFragments
from fencepost.broker.node import operator_actions
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.codec import encode_element, encode_response
from fencepost.protocol.codec.encoded_array import EncodedArray
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create

API = BY_NAME["metadata"]


def respond(
    driver: Driver, version: int, request: MetadataRequest, fragments: TopicFragments | None
) -> tuple[bytes, tuple[int, ...]]:
    """A broker's response, and the error codes that are found in it."""
    broker = driver.broker(1)
    peer = Peer(connection_id="c", host="192.0.2.1", listener_host="203.0.113.7")
    ctx = Context(broker, version, "c", peer, 0, 0, fragments=fragments)
    response = broker.handle(API, ctx, request)
    assert isinstance(response, MetadataResponse)
    assert isinstance(response.topics, EncodedArray) is (fragments is not None)
    data = b"".join(encode_response(API, version, 1, response))
    return data, error_code_finder(API, version)(response)


def requests(version: int, topic_id: UUID) -> list[MetadataRequest]:
    everything = MetadataRequest(topics=None if version else ())
    names = ("t", "none", "no/name", "u")
    named = MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=version >= 8,
    )
    if version < 12:
        return [everything, named]
    ids = (topic_id, UUID(int=9))
    by_id = MetadataRequest(topics=tuple(MetadataRequestTopic(topic_id=each) for each in ids))
    return [everything, named, by_id]


@pytest.mark.parametrize("version", versions("metadata"))
def test_the_bytes_are_the_same_whatever_happens_to_the_cluster(version: int) -> None:
    driver, fragments = Driver(3), TopicFragments()
    topic_id = create(driver, "t", [(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 3)
    create(driver, "u", [(3,), (2,)])
    cluster = driver.cluster

    def compare() -> None:
        for request in requests(version, topic_id):
            expected = respond(driver, version, request, None)
            for _ in range(2):
                assert respond(driver, version, request, fragments) == expected

    compare()
    driver.elect("t", 4, 3)
    compare()
    operator_actions.kill(cluster, 2)
    compare()
    operator_actions.start(cluster, 2)
    compare()
    cluster.controller.set_topic_configs("t", {"message.format.version": "0.10.0"})
    compare()
    cluster.controller.delete_topics(["u"])
    compare()
    create(driver, "u", [(1,), (2,)])
    compare()
    cluster.reset()
    compare()


def test_a_topic_that_did_not_change_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, fragments = Driver(3), TopicFragments()
    create(driver, "same", [(1,)])
    create(driver, "other", [(1, 2)])
    everything = MetadataRequest(topics=None)
    before = respond(driver, 12, everything, fragments)
    monkeypatch.setattr(metadata, "encode_element", None)  # not called
    assert respond(driver, 12, everything, fragments) == before
    monkeypatch.undo()
    encoded: list[str] = []

    def note(api: Api, version: int, path: tuple[str, ...], topic: MetadataResponseTopic) -> bytes:
        encoded.append(topic.name or "")
        return encode_element(api, version, path, topic)

    monkeypatch.setattr(metadata, "encode_element", note)
    driver.elect("other", 0, 2)
    assert respond(driver, 12, everything, fragments) == respond(driver, 12, everything, None)
    assert encoded == ["other"]


def test_topics_that_are_gone_are_not_kept() -> None:
    driver, fragments = Driver(3), TopicFragments()
    everything = MetadataRequest(topics=None)
    for number in range(5):
        create(driver, f"t-{number}", [(1,)])
    respond(driver, 12, everything, fragments)
    assert len(fragments) == 5
    driver.cluster.reset()
    respond(driver, 12, everything, fragments)
    assert len(fragments) == 0
