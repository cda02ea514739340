"""What others have named is shown in one line, without what acts on a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.shown_text import (
    escaped,
    escaped_json,
    escaped_lines,
    without_user_info,
    without_user_infos,
)

EVERY: Final = "".join(map(chr, range(sys.maxunicode + 1)))
_ACTS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control and format characters, surrogates, and separators of lines."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-1", "orders-1"),
        ("äöü 日本 🎉 \\n", "äöü 日本 🎉 \\n"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\x9b2J\x7f", "a\\x9b2J\\x7f"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("row\nforged\r\n\trow", "row\\nforged\\r\\n\\trow"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_is_not_printable_is_escaped_as_python_does(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_no_character_of_unicode_acts_on_what_shows_it() -> None:
    acting = {each for each in EVERY if unicodedata.category(each) in _ACTS}
    text = "".join(sorted(acting))
    assert escaped(text).isprintable()
    assert acting & set(escaped_json(text)) == {"\n", "\r", "\t"}
    assert acting & set(escaped_lines(text)) == {"\n"}


def test_a_character_that_is_printable_stays() -> None:
    printable = "".join(filter(str.isprintable, map(chr, range(0x10000))))
    assert escaped(f"{printable}\n") == f"{printable}\\n"


@given(st.text())
def test_a_text_of_several_lines_keeps_its_lines(text: str) -> None:
    assert escaped_lines(text).split("\n") == [escaped(line) for line in text.split("\n")]


@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.booleans(),
)
def test_json_says_the_same(value: object, is_indented: bool) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2 if is_indented else None)
    shown = escaped_json(text)
    assert json.loads(shown) == value
    assert all(each.isprintable() or each in "\r\n\t" for each in shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:9644", "http://127.0.0.1:9644"),
        ("http://me:secret@there:9644/x?y", "http://there:9644/x?y"),
        ("http://secret@there", "http://there"),
        ("http://me:se@cret@there", "http://there"),
        ("s3://key:secret@bucket/prefix", "s3://bucket/prefix"),
        ("HTTP+x://me:secret@[::1]:1/a@b", "HTTP+x://[::1]:1/a@b"),
        ("http://there/a@b?c@d#e@f", "http://there/a@b?c@d#e@f"),
        ("file:///home/a@b", "file:///home/a@b"),
        ("http://me:se/cret@there", "http://there"),
        ("http://me:se?cret@there", "http://there"),
        ("http://me:se cret@there", "http://there"),
        ("me:secret@there:9644", "there:9644"),
        ("there:9644", "there:9644"),
        ("http://me:secret@", "http://"),
    ],
)
def test_a_url_is_shown_without_its_user(url: str, shown: str) -> None:
    assert without_user_info(url) == shown


def test_a_message_is_shown_without_the_users_of_its_urls() -> None:
    said = "neither http://me:secret@there/ nor 's3://key:se/cret@b'; ask a@b or http://c"
    assert without_user_infos(said) == ("neither http://there/ nor 's3://b'; ask a@b or http://c")
