"""Requests that are well formed and odd, and ways to spoil the bytes of one."""

from __future__ import annotations

import random
import struct
import types
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from msgspec import Struct

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec import encode_request
from tests.harness import batches

Value: TypeAlias = Any
Numbers: TypeAlias = tuple[int, ...]

TOPIC: Final = "fuzz"
NAMES: Final = (
    "",
    TOPIC,
    TOPIC,
    TOPIC,
    "fuzz-2",
    "a b",
    "é",
    "x" * 300,
    "retention.ms",
    "consumer",
)
NUMBERS: Final = (0, 0, 0, 1, 1, 2, 3, -1, -2, -6, 5, 100)
ROUND_NUMBERS: Final = (*NUMBERS, 10_000, 60_000)
SMALL_NUMBERS: Final = tuple(number for number in NUMBERS if number >= 0)
"""What every field of a number can hold."""
LARGE_NUMBERS: Final = (2**15 - 1, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
RANDOM_APIS: Final = [api for api in APIS if api.name != "unregister_broker"]
BLOBS: Final = (b"", b"\0", b"\xff" * 9, bytes(range(64)))


def random_request(rng: random.Random, api: Api | None = None) -> bytes:
    """A whole frame of any version of any API that is served, its fields full of surprises.

    Not of UnregisterBroker: it takes the only broker's partitions away, as it does in Kafka.
    """
    chosen = api or rng.choice(RANDOM_APIS)
    version = rng.randint(chosen.min_version, chosen.max_version)
    wide = ROUND_NUMBERS if rng.random() < 0.7 else (*ROUND_NUMBERS, *LARGE_NUMBERS)
    for numbers in (wide, NUMBERS, SMALL_NUMBERS):
        message = _random_value(request_class(chosen), rng, numbers)
        try:
            chunks = encode_request(chosen, version, rng.getrandbits(31), "fuzz", message)
        except (OverflowError, ValueError, struct.error):
            continue  # a large number in a small field
        return b"".join(chunks)
    raise AssertionError(f"no {chosen.title} v{version} can be written")


@cache
def request_class(api: Api) -> Value:
    """The class of an API's requests."""
    module = import_module(f"fencepost.protocol.messages.{api.name}")
    return getattr(module, f"{api.title}Request")


@cache
def _hints(message: Value) -> dict[str, Value]:
    return get_type_hints(message)


def _random_value(hint: Value, rng: random.Random, numbers: Numbers) -> Value:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _random_message(hint, rng, numbers)
    origin: Value = get_origin(hint)
    if origin in (Union, types.UnionType):
        choices = get_args(hint)
        if bytearray in choices:
            return _random_records(rng)
        chosen = rng.choice([each for each in choices if each is not types.NoneType])
        absent = types.NoneType in choices and rng.random() < 0.2
        return None if absent else _random_value(chosen, rng, numbers)
    if origin is tuple:
        count = rng.choice((0, 1, 1, 1, 2, 3))
        item = get_args(hint)[0]
        return tuple(_random_value(item, rng, numbers) for _ in range(count))
    return _random_scalar(hint, rng, numbers)


def _random_message(message: Value, rng: random.Random, numbers: Numbers) -> object:
    hints = _hints(message)
    return message(
        **{name: _random_value(hints[name], rng, numbers) for name in message.__struct_fields__}
    )


def _random_scalar(hint: Value, rng: random.Random, numbers: Numbers) -> Value:
    if hint is bool:
        return rng.random() < 0.5
    if hint is int:
        return rng.choice(numbers)
    if hint is float:
        return rng.choice((0.0, 1.5, -1.0))
    if hint is str:
        return rng.choice(NAMES)
    if hint is UUID:
        return UUID(int=rng.choice((1, 2, rng.getrandbits(128))))
    return rng.choice(BLOBS)


def _random_records(rng: random.Random) -> bytes | None:
    data = batches.build(
        [(rng.choice(NUMBERS), rng.choice(BLOBS), rng.choice(BLOBS)) for _ in range(3)],
        base_offset=rng.choice((0, 0, 0, 7)),
        attributes=rng.choice((0, 0, 0, 1, 2, 3, 4, 5, 8, 16, 32, 255)),
        producer_id=rng.choice((-1, -1, 5)),
        producer_epoch=rng.choice((-1, 0, 1)),
        base_sequence=rng.choice((-1, 0, 3)),
    )
    return rng.choice((data, data, data, spoiled(data, rng), data * 2, b"", None))


def spoiled(data: bytes, rng: random.Random, *, keep: int = 0) -> bytes:
    """The bytes with something wrong behind the first ``keep`` of them."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if len(out) <= keep:
            break
        at = rng.randrange(keep, len(out))
        match rng.randrange(4):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del out[at:]
            case _:
                out[at:at] = rng.randbytes(rng.choice((1, 4, 40)))
    return bytes(out)


def resized(frame: bytes) -> bytes:
    """A frame with its size made right again, so that what is wrong with it lies further in."""
    return (len(frame) - 4).to_bytes(4, "big") + frame[4:]
