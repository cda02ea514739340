"""Keys, values and headers of records as JSON writes them, and back.

``text``
    UTF-8.
``base64``
    Any bytes.
``json``
    The value is any JSON, stored without spaces. A value of null is no value (a tombstone). Keys
    and headers are text.

A record that its encoding cannot show is shown in another: a value that is no JSON as text, and
bytes that are no UTF-8 as base64. So is a value that is JSON's null, which would be taken for no
value.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

Encoding: TypeAlias = Literal["text", "base64", "json"]
HeaderPairs: TypeAlias = tuple[tuple[str, str | None], ...]
StoredHeaders: TypeAlias = tuple[tuple[str, bytes | None], ...]
ShownHeaders: TypeAlias = dict[str, str | None] | HeaderPairs
"""By name, or as pairs where names repeat."""


class NotEncodable(ValueError):
    """What is given cannot be written in its encoding. The text is what it should be."""


def encode_text(given: str | None, encoding: Encoding) -> bytes | None:
    """A key, or the value of a header.

    :raises NotEncodable: When it is no base64, or no text that UTF-8 can encode.
    """
    if given is None:
        return None
    if encoding == "base64":
        try:
            return b64decode(given, validate=True)
        except ValueError:
            raise NotEncodable("input should be base64") from None
    try:
        return given.encode()
    except UnicodeEncodeError:  # JSON can write half of a surrogate pair
        raise NotEncodable("input should be text that UTF-8 can encode") from None


def encode_value(given: object, encoding: Encoding) -> bytes | None:
    """A record's value.

    :raises NotEncodable: As `encode_text`.
    :raises TypeError: When it is to be text and is something else.
    """
    if given is None or (isinstance(given, str) and encoding != "json"):
        return encode_text(given, encoding)
    if encoding != "json":
        raise TypeError("a value is text unless its encoding is json")
    try:
        return json.dumps(
            given, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except (ValueError, RecursionError):
        raise NotEncodable("input should be JSON that UTF-8 can encode") from None


class ShownRecord(NamedTuple):
    """Content of a record for JSON."""

    key: str | None
    value: object
    headers: ShownHeaders
    encoding: Encoding
    """In which it is shown."""


def show_record(
    key: bytes | None, value: bytes | None, headers: StoredHeaders, encoding: Encoding
) -> ShownRecord:
    """The content of a record in an encoding, or in the one that can show it."""
    texts = [key, *(each for _, each in headers)]
    if encoding == "json" and all(map(_is_utf8, texts)):
        try:
            parsed = None if value is None else parse_json(value)
        except ValueError:
            pass
        else:
            if (parsed is None) == (value is None):
                return _shown(key, parsed, headers, "json")
    if encoding != "base64" and all(map(_is_utf8, (*texts, value))):
        return _shown(key, _shown_text(value, "text"), headers, "text")
    return _shown(key, _shown_text(value, "base64"), headers, "base64")


def parse_json(value: bytes) -> object:
    """A value that is JSON.

    :raises ValueError: When it is none, or has numbers or text that JSON cannot write again.
    """
    try:
        parsed: object = json.loads(
            value.decode(), parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if b"\\u" in value:
        canonical_json(parsed)
    return parsed


def canonical_json(value: object) -> bytes:
    """JSON in one form, so that equal values can be compared as bytes.

    :raises ValueError: When UTF-8 cannot encode it.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def _shown(
    key: bytes | None, value: object, headers: StoredHeaders, encoding: Encoding
) -> ShownRecord:
    pairs = tuple((name, _shown_text(each, encoding)) for name, each in headers)
    return ShownRecord(_shown_text(key, encoding), value, _shown_headers(pairs), encoding)


def _shown_headers(pairs: HeaderPairs) -> ShownHeaders:
    # A client may have sent names that are no UTF-8.
    readable = tuple((name.encode("utf-8", "replace").decode(), each) for name, each in pairs)
    by_name = dict(readable)
    return by_name if len(by_name) == len(readable) else readable


def _shown_text(value: bytes | None, encoding: Encoding) -> str | None:
    if value is None:
        return None
    return b64encode(value).decode() if encoding == "base64" else value.decode()


def _is_utf8(value: bytes | None) -> bool:
    try:
        _ = value is None or value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def header_pairs(given: ShownHeaders) -> Iterable[tuple[str, str | None]]:
    """Headers as pairs, however they are given."""
    return given.items() if isinstance(given, dict) else given
