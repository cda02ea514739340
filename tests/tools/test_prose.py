"""The words that lint strikes are found, wherever they stand."""

from __future__ import annotations

import pytest

from tools.prose import STRUCK, STRUCK_IN_CODE, find


@pytest.mark.parametrize("word", STRUCK_IN_CODE)
def test_each_word_is_found_in_code(word: str) -> None:
    assert [each.word for each in find("a.py", f'"""It is {word.upper()} here."""')] == [word]


@pytest.mark.parametrize("word", STRUCK)
def test_each_word_is_found_in_pages(word: str) -> None:
    assert [each.word for each in find("docs/a.md", f"one\ntwo {word}, three")] == [word]


def test_the_line_is_named() -> None:
    assert [each.line for each in find("a.md", "one\ntwo\nanew\n")] == [3]


def test_a_phrase_may_be_broken_by_the_end_of_a_line() -> None:
    assert [each.word for each in find("a.py", "# what is\n    # told")] == ["what is told"]


def test_a_part_of_another_word_is_none() -> None:
    assert not list(find("a.py", "somebodys = renewable"))


def test_pages_may_say_nobody() -> None:
    assert not list(find("a.md", "nobody"))


def test_a_docstring_may_begin_with_none() -> None:
    assert [each.word for each in find("a.py", '"""Whoever asks."""')] == ["whoever"]


def test_an_option_keeps_its_name() -> None:
    assert not list(find("a.md", "`fencepost spark setup --anew`"))
