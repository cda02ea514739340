"""A raw client: speaks any version of a dozen APIs, and any bytes at all.

The layouts come from ``messages.txt``, not from the server's codec: what the server writes is read
by another codec. Decoded messages are plain dicts under Kafka's own field names, with just the
fields that were on the wire; tagged fields are named ``Name(tagN)``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

Value: TypeAlias = Any
"""What a field holds: None, bool, int, str, bytes, a list of these, or a Body."""
Body = dict[str, Value]
"""A message: field names to values."""

ZERO_UUID: Final = "0" * 32
NULL_CLIENT: Final = struct.pack(">h", -1)
_PRIMITIVES: Final[Mapping[str, str]] = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "bool": "?",
}


@dataclass(slots=True)
class Field:
    """One field of a message, in the versions from first to last (both inclusive)."""

    name: str
    type: str
    first: int
    last: int
    default: str | None = None
    tag: int | None = None
    fields: list[Field] = field(default_factory=list)

    def present(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(slots=True)
class Message:
    """One request or response type."""

    name: str
    key: int
    flexible_from: int
    fields: list[Field] = field(default_factory=list)

    def flexible(self, version: int) -> bool:
        return version >= self.flexible_from


@cache
def messages() -> Mapping[str, Message]:
    """Every message of ``messages.txt`` by name."""
    found: dict[str, Message] = {}
    parents: list[list[Field]] = []
    for line in Path(__file__).with_name("messages.txt").read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        if depth == 0:
            message = _parse_message(text)
            found[message.name] = message
            parents = [message.fields]
            continue
        entry = _parse_field(text)
        del parents[depth:]
        parents[-1].append(entry)
        parents.append(entry.fields)
    return found


def _parse_message(text: str) -> Message:
    name, *rest = text.split()
    options = dict(part.split("=", 1) for part in rest)
    return Message(name, int(options["key"]), int(options["flexible"].rstrip("+")))


def _parse_field(text: str) -> Field:
    name, kind, versions, *rest = text.split(" ")
    options = dict(part.split("=", 1) for part in rest)
    first, _, last = versions.partition("-")
    open_ended = versions.endswith("+")
    return Field(
        name,
        kind,
        first=int(first.rstrip("+")),
        last=32767 if open_ended else int(last or first),
        default=options.get("default"),
        tag=int(options["tag"]) if "tag" in options else None,
    )


def api_key(name: str) -> int:
    return messages()[name + "Request"].key


# -- writing ------------------------------------------------------------------------------------


def uvarint(number: int) -> bytes:
    """An unsigned variable-length integer."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def varint(number: int) -> bytes:
    """A signed (zigzag) variable-length integer."""
    return uvarint(2 * number if number >= 0 else -2 * number - 1)


def encode(name: str, version: int, body: Body) -> bytes:
    """The body of a message: fields that ``version`` lacks left out, absent ones by default.

    :raises KeyError: When the body has a field that no version of the message has.
    """
    message = messages()[name]
    return _write_struct(message.fields, version, body, message.flexible(version))


def _write_struct(fields: list[Field], version: int, body: Body, flexible: bool) -> bytes:
    unknown = body.keys() - {each.name for each in fields}
    if unknown:
        raise KeyError(f"no such fields: {sorted(unknown)}")
    out = bytearray()
    tagged: list[tuple[int, bytes]] = []
    for each in fields:
        if not each.present(version):
            continue
        if each.tag is not None:
            if each.name in body:
                value = _write(each, each.type, version, body[each.name], True)
                tagged.append((each.tag, value))
            continue
        value = body[each.name] if each.name in body else _default(each)
        out += _write(each, each.type, version, value, flexible)
    if flexible:
        out += uvarint(len(tagged))
        for tag, value in sorted(tagged):
            out += uvarint(tag) + uvarint(len(value)) + value
    return bytes(out)


def _default(each: Field) -> Value:
    if each.default == "null" or each.type == "records":
        return None
    if each.type.startswith("[]"):
        return []
    if each.type == "bool":
        return each.default == "true"
    if each.type in _PRIMITIVES:
        return int(each.default or "0", 0)
    return ZERO_UUID if each.type == "uuid" else each.default or ""


def _write(each: Field, kind: str, version: int, value: Value, flexible: bool) -> bytes:
    if kind in _PRIMITIVES:
        return struct.pack(">" + _PRIMITIVES[kind], value)
    if kind == "uuid":
        return bytes.fromhex(value)
    if kind.startswith("[]"):
        length = _write_length(None if value is None else len(value), ">i", flexible)
        element = kind[2:] or "{}"
        return length + b"".join(_write(each, element, version, x, flexible) for x in value or ())
    if kind == "{}":
        return _write_struct(each.fields, version, value, flexible)
    raw: bytes | None = value.encode() if isinstance(value, str) else value
    width = ">h" if kind == "string" else ">i"
    return _write_length(None if raw is None else len(raw), width, flexible) + (raw or b"")


def _write_length(length: int | None, width: str, flexible: bool) -> bytes:
    if flexible:
        return uvarint(0 if length is None else length + 1)
    return struct.pack(width, -1 if length is None else length)


# -- reading ------------------------------------------------------------------------------------


class Reader:
    """A cursor over bytes. :raises EOFError: When more is asked than there is."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, count: int) -> bytes:
        if count < 0 or count > self.left:
            raise EOFError(f"need {count} bytes at {self.position} of {len(self.data)}")
        start = self.position
        self.position += count
        return self.data[start : self.position]

    def unpack(self, layout: str) -> Value:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def uvarint(self) -> int:
        result = shift = 0
        while True:
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def varint(self) -> int:
        number = self.uvarint()
        return (number >> 1) ^ -(number & 1)


def decode(name: str, version: int, data: bytes) -> Body:
    """The body of a message; bytes left over appear as ``_TRAILING``."""
    message = messages()[name]
    reader = Reader(data)
    body = _read_struct(message.fields, version, reader, message.flexible(version))
    if reader.left:
        body["_TRAILING"] = reader.take(reader.left).hex()
    return body


def _read_struct(fields: list[Field], version: int, reader: Reader, flexible: bool) -> Body:
    body: Body = {}
    for each in fields:
        if each.tag is None and each.present(version):
            body[each.name] = _read(each, each.type, version, reader, flexible)
    if not flexible:
        return body
    tagged = {each.tag: each for each in fields if each.tag is not None and each.present(version)}
    for _ in range(reader.uvarint()):
        tag = reader.uvarint()
        value = Reader(reader.take(reader.uvarint()))
        if tag in tagged:
            each = tagged[tag]
            body[f"{each.name}(tag{tag})"] = _read(each, each.type, version, value, True)
        else:
            body[f"_tag{tag}"] = value.data.hex()
    return body


def _read(each: Field, kind: str, version: int, reader: Reader, flexible: bool) -> Value:
    if kind in _PRIMITIVES:
        return reader.unpack(">" + _PRIMITIVES[kind])
    if kind == "uuid":
        return reader.take(16).hex()
    if kind == "{}":
        return _read_struct(each.fields, version, reader, flexible)
    width = ">h" if kind == "string" else ">i"
    length = reader.uvarint() - 1 if flexible else int(reader.unpack(width))
    if length < 0:
        return None
    if kind.startswith("[]"):
        element = kind[2:] or "{}"
        return [_read(each, element, version, reader, flexible) for _ in range(length)]
    raw = reader.take(length)
    return raw.decode() if kind == "string" else raw


# -- talking ------------------------------------------------------------------------------------


def frame(
    api: str | int,
    version: int,
    body: Body | bytes,
    *,
    correlation_id: int = 1,
    client_id: str | None = "wire",
    encode_as: int | None = None,
) -> bytes:
    """A whole request, its size first. ``encode_as`` writes the body as that version has it."""
    name = api if isinstance(api, str) else None
    key = api_key(api) if isinstance(api, str) else api
    header = struct.pack(">hhi", key, version, correlation_id)
    client = (client_id or "").encode()
    header += NULL_CLIENT if client_id is None else struct.pack(">h", len(client)) + client
    if name and messages()[name + "Request"].flexible(version):
        header += b"\0"
    if not isinstance(body, bytes):
        body = encode(f"{name}Request", version if encode_as is None else encode_as, body)
    return struct.pack(">i", len(header) + len(body)) + header + body


def decode_answer(api: str, version: int, payload: bytes) -> tuple[int, Body]:
    """The correlation id and body of an answer (without its size)."""
    reader = Reader(payload)
    correlation_id = int(reader.unpack(">i"))
    # The header of an ApiVersions answer is always version 0 (KIP-511).
    if api != "ApiVersions" and messages()[api + "Response"].flexible(version):
        assert reader.uvarint() == 0, "tagged fields in the header of an answer"
    return correlation_id, decode(api + "Response", version, payload[reader.position :])


def receive_frame(connection: socket.socket) -> bytes:
    """The next frame, without its size. :raises ConnectionError: At the end of the stream."""
    return _exactly(connection, struct.unpack(">i", _exactly(connection, 4))[0])


def _exactly(connection: socket.socket, count: int) -> bytes:
    out = bytearray()
    while len(out) < count:
        chunk = connection.recv(count - len(out))
        if not chunk:
            raise ConnectionError(f"EOF after {len(out)}/{count} bytes")
        out += chunk
    return bytes(out)


class Connection:
    """A blocking connection to one broker."""

    def __init__(
        self, address: tuple[str, int], *, timeout: float = 30, client_id: str | None = "wire"
    ) -> None:
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(
        self, api: str | int, version: int, body: Body | bytes, *, encode_as: int | None = None
    ) -> None:
        self.correlation_id += 1
        self.socket.sendall(
            frame(
                api,
                version,
                body,
                correlation_id=self.correlation_id,
                client_id=self.client_id,
                encode_as=encode_as,
            )
        )

    def receive(self) -> bytes:
        """The next answer, without its size. :raises ConnectionError: At the end of the stream."""
        return receive_frame(self.socket)

    def call(self, api: str, version: int, body: Body) -> Body:
        """One request and its answer."""
        self.send(api, version, body)
        correlation_id, answer = decode_answer(api, version, self.receive())
        assert correlation_id == self.correlation_id, (correlation_id, self.correlation_id)
        return answer
