"""The generated messages are what the generator writes, and safe to share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import NODEFAULT

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.schema import Side, default_value, message_schema
from fencepost.protocol.messages.fetch import FetchPartition
from tests.protocol.messages import EVERY, title

ROOT = Path(__file__).parents[2]


def test_they_are_as_the_generator_writes_them() -> None:
    generator = [sys.executable, "-m", "tools.generate_messages", "--check"]
    done = subprocess.run(generator, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "messages are as generated\n"), done.stderr


def test_they_are_frozen() -> None:
    with pytest.raises(AttributeError):
        FetchPartition().fetch_offset = 1  # type: ignore[misc]  # as the name says


@pytest.mark.parametrize("case", EVERY, ids=title)
def test_every_field_of_every_version_has_a_default_that_cannot_change(
    case: tuple[Api, int, Side],
) -> None:
    api, version, side = case
    schemas = [message_schema(api.name, side, version)]
    while schemas:
        schema = schemas.pop()
        schemas += [f.struct for f in schema.fields if f.struct is not None]
        for name in schema.cls.__struct_fields__:
            default = default_value(schema.cls, name)
            assert default is not NODEFAULT
            hash(default)
