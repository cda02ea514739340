"""Producer ids come in blocks, and no two brokers give out the same."""

from __future__ import annotations

from fencepost.broker.node.cluster import Conformance
from fencepost.broker.produce.producer_id_manager import BLOCK_SIZE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.harness.driver import NEWEST, Driver

REQUEST = InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
)


def init(driver: Driver, broker_id: int) -> tuple[int, int]:
    response = driver.ask(broker_id, "init_producer_id", NEWEST, REQUEST)
    return response.error_code, response.producer_id


def test_brokers_give_out_blocks_of_their_own() -> None:
    driver = Driver()
    first = [init(driver, 1)[1] for _ in range(3)]
    second = [init(driver, 2)[1] for _ in range(3)]
    assert first == [0, 1, 2]
    assert second == [BLOCK_SIZE, BLOCK_SIZE + 1, BLOCK_SIZE + 2]


def test_a_block_that_is_used_up_is_followed_by_another() -> None:
    ids = Driver(brokers=1).broker(1).producer_ids
    assert [ids.generate_producer_id() for _ in range(BLOCK_SIZE + 2)] == list(
        range(BLOCK_SIZE + 2)
    )


def test_as_at_apache_kafka_the_first_request_comes_before_the_ids() -> None:
    driver = Driver(conformance=Conformance.APACHE)
    assert init(driver, 1) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert init(driver, 1) == (ErrorCode.NONE, 0)
    assert init(driver, 2) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
