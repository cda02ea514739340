"""A recorded run has the frames of a client by the dialect that it speaks."""

from __future__ import annotations

import json
from pathlib import Path

from fencepost.broker.core.context import Peer
from fencepost.cli.simulate_record import _Trace
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.typed_requests import fetch_request, fetched, from_offset


def test_an_exchange_is_encoded_by_the_dialect_of_its_client(tmp_path: Path) -> None:
    driver = Driver(1, dialect=KIP_320_DRAFT)
    create(driver, "t")
    trace = _Trace(tmp_path, 1)
    trace.follow(driver.cluster)
    request = fetch_request(("t", from_offset(7)))
    asked = request.topics[0].partitions[0]
    for dialect, error in ((KIP_320_DRAFT, ErrorCode.NONE), (None, ErrorCode.OFFSET_OUT_OF_RANGE)):
        peer = Peer(connection_id="c", host="192.0.2.1", dialect=dialect)
        answer = trace.ask(driver.broker(1), BY_NAME["fetch"], 9, request, peer)
        assert fetched(answer).error_code == error
    trace.end()
    trace.close()
    (file,) = tmp_path.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    found = [line for line in lines if line.get("api") == "Fetch"]
    assert {each["dialect"] for each in found} == {"kip-320-draft", None}
    for each in found:
        (partition,) = each["request"]["topics"][0]["partitions"]
        assert partition["fetch_offset"] == asked.fetch_offset
        assert ("last_fetched_epoch" in partition) is (each["dialect"] is not None)
