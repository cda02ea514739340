"""Records as JSON: whatever a client has written can be shown, and the same bytes come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.verbs.record_encoding import (
    NotEncodable,
    canonical_json,
    encode_text,
    encode_value,
    parse_json,
    show_record,
)

if TYPE_CHECKING:
    from fencepost.verbs.record_encoding import Encoding

ENCODINGS: tuple[Encoding, ...] = ("text", "base64", "json")
fields = st.none() | st.binary(max_size=40) | st.text(max_size=40).map(str.encode)


@given(key=fields, value=fields, header=fields, encoding=st.sampled_from(ENCODINGS))
def test_what_is_shown_of_a_record_makes_the_same_record(
    key: bytes | None, value: bytes | None, header: bytes | None, encoding: Encoding
) -> None:
    shown = show_record(key, value, (("h", header),), encoding)
    json.dumps(shown, allow_nan=False).encode()
    assert encode_text(shown.key, shown.encoding) == key
    assert isinstance(shown.headers, dict)
    assert encode_text(shown.headers["h"], shown.encoding) == header
    made = encode_value(shown.value, shown.encoding)
    if shown.encoding == "json" and made is not None and value is not None:
        made, value = canonical_json(parse_json(made)), canonical_json(parse_json(value))
    assert made == value


@pytest.mark.parametrize(
    ("value", "encoding", "shown", "shown_in"),
    [
        (b"two", "text", "two", "text"),
        (b"two", "base64", "dHdv", "base64"),
        (b"\xff", "text", "/w==", "base64"),
        (b'{"a": [1, null]}', "json", {"a": [1, None]}, "json"),
        (b"two", "json", "two", "text"),
        (b"\xff", "json", "/w==", "base64"),
        (b"null", "json", "null", "text"),
        (None, "json", None, "json"),
        (b"NaN", "json", "NaN", "text"),
        (b"1e999", "json", "1e999", "text"),
        (rb'"\ud800"', "json", r'"\ud800"', "text"),
        (b"[" * 100_000, "json", "[" * 100_000, "text"),
        (b"1" * 5_000, "json", "1" * 5_000, "text"),
    ],
)
def test_what_an_encoding_cannot_show_is_shown_in_another(
    value: bytes | None, encoding: Encoding, shown: object, shown_in: Encoding
) -> None:
    found = show_record(b"k", value, (), encoding)
    assert (found.value, found.encoding) == (shown, shown_in)


def test_headers_are_an_object_unless_their_names_repeat() -> None:
    assert show_record(None, None, (("a", b"1"), ("b", None)), "text").headers == {
        "a": "1",
        "b": None,
    }
    repeated = (("a", b"1"), ("a", b"2"))
    assert show_record(None, None, repeated, "text").headers == (("a", "1"), ("a", "2"))


def test_json_is_stored_without_spaces() -> None:
    assert encode_value({"a": [1, "ä"]}, "json") == '{"a":[1,"ä"]}'.encode()
    assert encode_value("a", "json") == b'"a"'


@pytest.mark.parametrize(
    ("value", "encoding"),
    [("%", "base64"), ("\ud800", "text"), (["\ud800"], "json"), (float("nan"), "json")],
)
def test_what_has_no_bytes_is_refused(value: object, encoding: Encoding) -> None:
    with pytest.raises(NotEncodable):
        encode_value(value, encoding)
    with pytest.raises(TypeError):
        encode_value(7, "text")
