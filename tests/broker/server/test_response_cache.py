"""Metadata is encoded once a view: what may be repeated is, and nothing else."""

from __future__ import annotations

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.network.links import CONTROLLER, BrokerId
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.socketless_server import SocketlessServer

ALL = MetadataRequest(topics=None)


def test_a_repeated_answer_is_the_same_but_for_its_correlation_id() -> None:
    client = SocketlessServer().connect()
    client.ask("metadata", 9, ALL)
    client.ask("metadata", 9, ALL)
    first, second = client.frames()
    assert first[4:] == second[4:]
    assert client.correlation_ids() == [1, 2]


def test_a_repeated_answer_is_not_made_again() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.ask("metadata", 9, ALL)
    edge.cluster.brokers[1].handle = None  # type: ignore[assignment, method-assign]  # not asked
    client.ask("metadata", 9, ALL)
    assert client.correlation_ids() == [1, 2]


def test_a_new_view_is_told_at_once() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.ask("metadata", 9, ALL)
    edge.cluster.controller.create_topic(NewTopic(name="new", configs={}))
    client.ask("metadata", 9, ALL)
    assert [t.name for t in client.answer(0, "metadata", 9).topics] == ["t"]
    assert [t.name for t in client.answer(1, "metadata", 9).topics] == ["t", "new"]


def test_other_words_and_versions_get_their_own_answers() -> None:
    client = SocketlessServer().connect()
    client.ask("metadata", 9, ALL)
    client.ask("metadata", 12, ALL)
    client.ask("metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)))
    client.ask("metadata", 9, MetadataRequest(topics=()))
    assert client.answer(1, "metadata", 12).topics[0].topic_id is not None
    assert len(client.answer(2, "metadata", 9).topics) == 1
    assert client.answer(3, "metadata", 9).topics == ()


def test_an_answer_that_created_a_topic_is_not_kept() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="born"),))
    client.ask("metadata", 9, asked)
    edge.cluster.controller.delete_topics(["born"])
    client.ask("metadata", 9, asked)
    assert "born" in edge.cluster.controller.image.topics


def test_an_answer_that_lacks_a_topic_is_not_kept() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="born"),))
    edge.cluster.network.cut_link(BrokerId(1), CONTROLLER)
    client.ask("metadata", 9, asked)
    edge.cluster.network.restore_link(BrokerId(1), CONTROLLER)
    client.ask("metadata", 9, asked)
    assert "born" in edge.cluster.controller.image.topics
