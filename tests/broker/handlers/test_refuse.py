"""Every handler can answer any request of every version with one error code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings

from fencepost.protocol import codec
from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.schema import message_shape
from fencepost.protocol.errors import ErrorCode
from tests.protocol.messages import Content, Value, contents, ours

CODE = ErrorCode.KAFKA_STORAGE_ERROR
Version: TypeAlias = tuple[Api, int]
VERSIONS: list[Version] = [
    (api, version) for api in APIS for version in range(api.min_version, api.max_version + 1)
]


def error_codes(message: Value) -> Iterator[int]:
    """Every error code in a message, at whatever depth."""
    if isinstance(message, tuple):
        for item in message:
            yield from error_codes(item)
    elif is_dataclass(message):
        for field in fields(message):
            if field.name == "error_code":
                yield message.error_code
            yield from error_codes(getattr(message, field.name))


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: f"{case[0].title}-v{case[1]}")
def test_the_error_stands_wherever_there_is_room_for_one(case: Version) -> None:
    api, version = case
    refuse = import_module(f"fencepost.broker.handlers.{api.name}").refuse
    shape = message_shape(api.name, "request", version)

    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(contents(shape))
    def refused(content: Content) -> None:
        response = refuse(ours(shape, content), CODE)
        assert set(error_codes(response)) <= {CODE, 0 if api.name == "create_topics" else CODE}
        chunks = codec.encode_response(api, version, 1, response)
        assert sum(map(len, chunks)) > 4

    refused()
