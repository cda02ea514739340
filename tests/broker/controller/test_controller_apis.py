"""Clients' requests that the controller answers: brokers forward them on their link to it."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.handlers import CONTROLLER_APIS, controller_handler_of
from fencepost.broker.network.links import CONTROLLER, BrokerId, ControllerRequest, Link
from fencepost.broker.node import operator_actions
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import CreateTopicsRequest
from fencepost.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.network.test_links import start
from tests.harness.driver import NEWEST, Asked, Driver, ManualTransport
from tests.harness.typed_requests import creatable

ONE = BrokerId(1)
TO_CONTROLLER, FROM_CONTROLLER = Link(ONE, CONTROLLER), Link(CONTROLLER, ONE)
TIMEOUT_MS = 5_000


def request_topic(driver: Driver, name: str = "t") -> Asked:
    request = CreateTopicsRequest(topics=(creatable(name),), timeout_ms=TIMEOUT_MS)
    return driver.send(1, "create_topics", NEWEST, request)


def describe_quorum(driver: Driver) -> Asked:
    topic = TopicData(
        topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),)
    )
    return driver.send(1, "describe_quorum", NEWEST, DescribeQuorumRequest(topics=(topic,)))


def exists(driver: Driver, name: str = "t") -> bool:
    return name in driver.cluster.controller.image.topics


def deliver_on(post: ManualTransport, link: Link) -> None:
    """Deliver, in order, until a message of this link has arrived."""
    while post.deliver() != [link]:
        pass


def test_where_messages_arrive_at_once_the_answer_comes_in_the_same_turn() -> None:
    asked = request_topic(Driver(3))
    assert asked.response.topics[0].error_code == ErrorCode.NONE


def test_an_answer_comes_when_its_message_does() -> None:
    driver, post = start()
    post.keeps = True
    asked = request_topic(driver)
    assert (asked.done, exists(driver)) == (False, False)
    assert post.deliver() == [TO_CONTROLLER]
    assert (asked.done, exists(driver)) == (False, True)
    deliver_on(post, FROM_CONTROLLER)  # the image
    assert not asked.done
    deliver_on(post, FROM_CONTROLLER)
    assert asked.response.topics[0].error_code == ErrorCode.NONE


def test_a_request_that_is_on_the_way_when_the_link_is_cut_is_lost() -> None:
    driver, post = start()
    post.keeps = True
    asked = request_topic(driver)
    driver.cluster.network.cut_link(ONE, CONTROLLER)
    assert post.deliver() == [TO_CONTROLLER]
    assert asked.response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not exists(driver)


def test_where_the_answer_is_lost_the_request_is_carried_out_all_the_same() -> None:
    driver, post = start()
    post.keeps = True
    asked = request_topic(driver)
    post.deliver()
    driver.cluster.network.cut_link(ONE, CONTROLLER)
    post.deliver(len(post.kept))
    assert asked.response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert exists(driver)


def test_a_request_that_is_late_is_carried_out_late() -> None:
    driver, post = start()
    post.keeps = True
    asked = request_topic(driver)
    driver.advance(TIMEOUT_MS - 1)
    assert not asked.done
    driver.advance(1)
    assert asked.response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not exists(driver)
    post.keeps = False
    post.deliver()
    assert exists(driver)


def test_a_request_without_a_timeout_waits_for_a_minute() -> None:
    driver, post = start()
    post.keeps = True
    asked = describe_quorum(driver)
    driver.advance(59_999)
    assert not asked.done
    driver.advance(1)
    assert asked.response.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("api", [api for api in APIS if api.name in CONTROLLER_APIS])
def test_a_broker_that_is_cut_off_refuses_what_the_controller_answers(api: Api) -> None:
    name = api.name
    driver = Driver(3)
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    messages = import_module(f"fencepost.protocol.messages.{name}")
    title = "".join(map(str.capitalize, name.split("_")))
    request = getattr(messages, f"{title}Request")()
    asked = driver.send(1, name, NEWEST, request)
    handler = import_module(f"fencepost.broker.handlers.{name}")
    assert asked.response == handler.refuse(request, ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_the_handlers_of_the_controller_are_given_its_context(api: Api) -> None:
    name = api.name
    handle = import_module(f"fencepost.broker.handlers.{name}").handle
    first = next(iter(inspect.signature(handle).parameters.values()))
    assert (first.annotation is ControllerContext) == (name in CONTROLLER_APIS)


def test_the_controller_has_no_handler_of_what_brokers_answer() -> None:
    with pytest.raises(ValueError, match="does not answer Fetch"):
        controller_handler_of(BY_NAME["fetch"])
    with pytest.raises(TypeError, match="answers no ControllerRequest"):
        Driver(1).cluster.controller_apis.handle(ControllerRequest[int]())


# -- what brokers ask on their own account --------------------------------------------------------


def test_a_topic_that_is_still_to_be_created_is_not_known() -> None:
    driver, post = start()
    post.keeps = True
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    (topic,) = driver.ask(1, "metadata", NEWEST, request).topics
    assert (topic.error_code, exists(driver)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)
    post.keeps = False
    post.deliver(len(post.kept))
    (topic,) = driver.ask(1, "metadata", NEWEST, request).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


def test_a_broker_that_is_cut_off_creates_no_topic() -> None:
    driver = Driver(3)
    driver.cluster.network.cut_link(ONE, CONTROLLER)
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    (topic,) = driver.ask(1, "metadata", NEWEST, request).topics
    assert (topic.error_code, exists(driver)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)


INIT = InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
)


def test_while_producer_ids_are_on_the_way_there_are_none() -> None:
    driver, post = start()
    post.keeps = True
    for _ in range(2):
        answer = driver.ask(1, "init_producer_id", NEWEST, INIT)
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert [link for link, _ in post.kept] == [TO_CONTROLLER]
    post.keeps = False
    post.deliver()
    assert driver.ask(1, "init_producer_id", NEWEST, INIT).producer_id == 0


@pytest.mark.parametrize("crashes", [False, True])
def test_producer_ids_that_were_lost_are_requested_again(crashes: bool) -> None:
    driver, post = start()
    post.keeps = True
    driver.ask(1, "init_producer_id", NEWEST, INIT)
    driver.cluster.network.cut_link(ONE, CONTROLLER)
    if crashes:
        driver.broker(1).stop(crash=True)
    post.keeps = False
    post.deliver(len(post.kept))
    driver.cluster.network.restore_link(ONE, CONTROLLER)
    if crashes:
        driver.broker(1).start(driver.cluster.controller.image)
    assert driver.ask(1, "init_producer_id", NEWEST, INIT).producer_id == 0
