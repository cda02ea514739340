"""Every handler can answer any request of every version with one error code."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

import pytest

from fencepost.protocol import codec
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import message_schema
from fencepost.protocol.errors import ErrorCode
from tests.protocol.messages import Value, content_of, ours, smallest

CODE: Final = ErrorCode.KAFKA_STORAGE_ERROR
WITHOUT: Final = [(BY_NAME["describe_log_dirs"], version) for version in (1, 2)]
"""Where the only room for an error is a directory."""
VERSIONS: Final = [
    (api, version) for api in APIS for version in range(api.min_version, api.max_version + 1)
]


def error_codes(content: Value) -> Iterator[int]:
    """Every error code in a message, at whatever depth."""
    if isinstance(content, tuple):
        for item in content:
            yield from error_codes(item)
    elif isinstance(content, dict):
        for name, value in content.items():
            if name in {"error_code", "partition_error_code"}:
                yield value
            yield from error_codes(value)


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: f"{case[0].title}-v{case[1]}")
def test_the_error_stands_wherever_there_is_room_for_one(case: tuple[Api, int]) -> None:
    api, version = case
    refuse = import_module(f"fencepost.broker.handlers.{api.name}").refuse
    request = message_schema(api.name, "request", version)
    response = refuse(ours(request, smallest(request)), CODE)
    sent = b"".join(codec.encode_response(api, version, 1, response))[4:]
    body = codec.response_body_offset(api, version)
    shape = message_schema(api.name, "response", version)
    content = content_of(shape, codec.decode_response(api, version, sent, body))
    assert set(error_codes(content)) == (set() if case in WITHOUT else {CODE})
