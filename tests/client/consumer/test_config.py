from __future__ import annotations

from dataclasses import fields

import pytest

from fencepost.client.consumer.config import ConsumerConfig, ConsumerParameters, make_config
from fencepost.client.model import Isolation
from fencepost.protocol.codec.drafts import KIP_320_DRAFT


def test_each_parameter_is_typed_twice_alike() -> None:
    config = {each.name: each.type for each in fields(ConsumerConfig) if each.init}
    assert config == ConsumerParameters.__annotations__


def test_parameters_are_read() -> None:
    config = make_config(
        isolation_level="read_committed", dialect="kip-320-draft", auto_offset_reset="closest"
    )
    assert config.isolation is Isolation.READ_COMMITTED
    assert config.draft is KIP_320_DRAFT
    assert make_config().draft is None
    assert make_config().isolation is Isolation.READ_UNCOMMITTED


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"auto_offset_reset": "newest"}, "auto_offset_reset 'newest'"),
        ({"auto_offset_reset": "closest"}, "dialect"),
        ({"isolation_level": "serializable"}, "isolation_level 'serializable'"),
        ({"dialect": "kip-1"}, "there is no dialect 'kip-1'"),
        ({"group_id": ""}, "group_id is empty"),
        ({"heartbeat_interval_ms": 100, "session_timeout_ms": 100}, "heartbeat_interval_ms"),
        ({"max_poll_records": 0}, "max_poll_records"),
    ],
)
def test_wrong_ones_are_refused_by_name(parameters: ConsumerParameters, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make_config(**parameters)
