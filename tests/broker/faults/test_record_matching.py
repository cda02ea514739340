"""Faults that select requests by the records in them: of Produce, and of Fetch by its response."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost.broker.faults.kinds import Action, Corrupt, Delay, Drop, Observe, Refuse, Throttle
from fencepost.broker.faults.selectors import RecordSelector
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import ProduceRequest
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import Record
from tests.broker.faults.faulty import CODE, set_fault
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, list_offset
from tests.harness.records import batch
from tests.harness.typed_requests import (
    fetch_request,
    from_offset,
    produce_request,
    produced,
    values,
)

ORDER = Record(0, 0, b"17", b"two posts", (("type", b"order"), ("trace", None)))
OTHER = Record(0, 0, b"18", None)


@pytest.fixture
def driver() -> Driver:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    return driver


def request(*records: Record, codec: Codec = Codec.NONE, index: int = 0) -> ProduceRequest:
    placed = [record._replace(offset=place) for place, record in enumerate(records)]
    return produce_request(("t", index, bytes(batch(*placed, codec=codec))))


def send(driver: Driver, *records: Record, codec: Codec = Codec.NONE, index: int = 0) -> int:
    answer = driver.ask(1, "produce", 12, request(*records, codec=codec, index=index))
    return produced(answer).error_code


@pytest.mark.parametrize(
    ("record", "hits"),
    [
        (RecordSelector(key="17"), 1),
        (RecordSelector(key="1"), 0),
        (RecordSelector(value="two posts"), 1),
        (RecordSelector(value="two"), 0),
        (RecordSelector(header=("type", "order")), 1),
        (RecordSelector(header=("type", "refund")), 0),
        (RecordSelector(header=("trace", None)), 1),
        (RecordSelector(header=("type", None)), 0),
        (RecordSelector(key="17", value="two posts", header=("type", "order")), 1),
        (RecordSelector(key="18", value="two posts"), 0),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_produce_is_hit_by_key_value_or_header_of_one_record(
    driver: Driver, record: RecordSelector, hits: int, codec: Codec
) -> None:
    fault = set_fault(driver, "produce", Refuse(CODE), record=record)
    assert send(driver, OTHER, ORDER, codec=codec) == (CODE if hits else 0)
    assert fault.hits == hits


def codes_of_both_partitions(driver: Driver) -> list[int]:
    """Of a request whose second partition alone has the record with the key 17."""
    both = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=(*request(OTHER).topic_data, *request(ORDER, index=1).topic_data),
    )
    answer = driver.ask(1, "produce", 12, both)
    return [part.error_code for topic in answer.responses for part in topic.partition_responses]


def test_an_error_is_only_of_the_partitions_with_such_a_record(driver: Driver) -> None:
    set_fault(driver, "produce", Refuse(CODE), record=RecordSelector(key="17"))
    assert codes_of_both_partitions(driver) == [0, CODE]
    assert list_offset(driver, "t", -1).offset == 1


def test_only_the_partitions_with_such_a_record_are_corrupted(driver: Driver) -> None:
    set_fault(driver, "produce", Corrupt(), record=RecordSelector(key="17"))
    assert codes_of_both_partitions(driver) == [0, ErrorCode.CORRUPT_MESSAGE]


def test_a_partition_and_a_record_must_both_match(driver: Driver) -> None:
    record = RecordSelector(key="17")
    fault = set_fault(driver, "produce", Refuse(CODE), topic="t", partition=1, record=record)
    assert send(driver, ORDER) == 0
    assert send(driver, ORDER, index=1) == CODE
    assert fault.hits == 1


def test_a_batch_that_does_not_decode_has_no_such_record(driver: Driver) -> None:
    fault = set_fault(driver, "produce", Drop(), record=RecordSelector(key="17"))
    broken = bytearray(batch(ORDER, codec=Codec.GZIP))
    broken[-9:] = bytes(9)
    assert driver.send(1, "produce", 12, produce_request(("t", 0, bytes(broken)))).done
    assert driver.send(1, "produce", 12, produce_request(("t", 0, b"\1" * 80))).done
    assert fault.hits == 0


def test_records_are_decoded_only_while_such_a_fault_stands(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    read = ReadBudget.read

    def counted(budget: ReadBudget, data: bytes) -> object:
        decoded.append(len(data))
        return read(budget, data)

    monkeypatch.setattr(ReadBudget, "read", counted)
    set_fault(driver, "produce", Drop(), topic="other", count=None)
    send(driver, ORDER)
    fault = set_fault(driver, "produce", Refuse(CODE), record=RecordSelector(key="17"))
    driver.cluster.faults.remove(fault.id)
    send(driver, ORDER)
    once = set_fault(driver, "produce", Refuse(CODE), record=RecordSelector(key="17"))
    send(driver, ORDER)
    counted_once = len(decoded)
    send(driver, ORDER)
    assert (once.left, len(decoded)) == (0, counted_once)
    assert decoded


# -- Fetch --------------------------------------------------------------------------------------


def read(driver: Driver, offset: int) -> tuple[int, list[bytes | None]]:
    answer = fetch(driver, "t", offset)
    return answer.error_code, values(answer)


@pytest.fixture
def written(driver: Driver) -> Driver:
    """One record in each of two batches; the second has the key 17."""
    for record in (OTHER, ORDER):
        assert send(driver, record) == 0
    return driver


def test_a_fetch_is_hit_by_a_record_of_its_response(written: Driver) -> None:
    fault = set_fault(written, "fetch", Refuse(CODE), record=RecordSelector(key="17"), count=2)
    assert read(written, 2) == (0, [])
    assert fault.hits == 0
    assert read(written, 1) == (CODE, [])
    assert read(written, 0) == (CODE, [])
    assert read(written, 0) == (0, [None, b"two posts"])
    assert fault.hits == 2


@pytest.mark.parametrize("action", [Delay(50), Throttle(50)])
def test_a_response_with_such_a_record_meets_the_action(written: Driver, action: Action) -> None:
    set_fault(written, "fetch", action, record=RecordSelector(key="17"))
    request = fetch_request(("t", from_offset(1)))
    asked = written.send(1, "fetch", 12, request)
    assert asked.done is isinstance(action, Throttle)
    written.advance(50)
    assert asked.response.throttle_time_ms == (50 if isinstance(action, Throttle) else 0)
    assert written.send(1, "fetch", 12, request).done


def test_a_fetch_that_waits_for_the_record_meets_the_action(written: Driver) -> None:
    set_fault(written, "fetch", Refuse(CODE), record=RecordSelector(key="17"))
    waiting = written.send(1, "fetch", 12, fetch_request(("t", from_offset(2)), max_wait_ms=500))
    assert not waiting.done
    send(written, ORDER)
    assert waiting.response.responses[0].partitions[0].error_code == CODE


def test_only_the_partitions_of_a_response_with_such_a_record_are_refused(driver: Driver) -> None:
    send(driver, OTHER)
    send(driver, ORDER, index=1)
    set_fault(driver, "fetch", Refuse(CODE), record=RecordSelector(key="17"))
    request = fetch_request(("t", from_offset(0)), ("t", from_offset(0, index=1)))
    (topic,) = driver.ask(1, "fetch", 12, request).responses
    assert [each.error_code for each in topic.partitions] == [0, CODE]
    assert values(topic.partitions[0]) == [None]


def hits_of(driver: Driver, offsets: Sequence[int]) -> int:
    fault = set_fault(driver, "fetch", Observe(), record=RecordSelector(key="17"), count=None)
    for offset in offsets:
        read(driver, offset)
    return fault.hits


def test_responses_with_such_a_record_are_counted(written: Driver) -> None:
    assert hits_of(written, [0, 1, 2, 1]) == 3


def test_a_response_that_another_fault_changes_is_counted_as_it_is_sent(written: Driver) -> None:
    observer = set_fault(written, "fetch", Observe(), record=RecordSelector(key="17"), count=None)
    set_fault(written, "fetch", Refuse(CODE))
    assert read(written, 1) == (CODE, [])
    assert observer.hits == 0
    set_fault(written, "fetch", Throttle(5))
    written.send(1, "fetch", 12, fetch_request(("t", from_offset(1))))
    assert observer.hits == 1
