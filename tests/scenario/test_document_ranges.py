from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.scenario.document import MAX_RANGE, RangeTooLong, collapse_ranges, expand_ranges


def test_a_range_stands_for_all_its_texts() -> None:
    assert list(expand_ranges(["a8..a11", "x", 3])) == ["a8", "a9", "a10", "a11", "x", 3]
    assert list(expand_ranges(["a08..a10"])) == ["a08", "a09", "a10"]


def test_what_only_looks_like_a_range_is_text() -> None:
    texts = ["a0..b9", "..", "a..b", "1...3", "a1..a"]
    assert list(expand_ranges(texts)) == texts


def test_what_is_too_long_for_a_range_is_text() -> None:
    texts = ["a0..a" + "9" * 5000, "9" * 5000, "1.." * 10_000]
    assert list(expand_ranges(texts)) == texts
    assert collapse_ranges(texts) == texts
    for stem, count in (("x" * (MAX_RANGE // 2 - 2), 3), ("x" * (MAX_RANGE // 2 - 1), 1)):
        assert len(list(expand_ranges([f"{stem}1..{stem}3"]))) == count


def test_all_ranges_of_a_list_are_bounded_together() -> None:
    assert len(list(expand_ranges(["a1..a50000", "b1..b50000"]))) == 100_000
    for texts in (["a1..a999999999999"], ["a1..a50000", "b1..b50001"]):
        with pytest.raises(RangeTooLong, match="ranges stand for 100000 texts at most"):
            list(expand_ranges(texts))


def test_a_range_that_runs_backwards_is_empty() -> None:
    assert list(expand_ranges(["a3..a1"])) == []


def test_runs_are_shown_as_ranges() -> None:
    texts = ["a0", "a1", "a2", "b7", "b8", None, "a3", "a04", "x"]
    assert collapse_ranges(texts) == ["a0..a2", "b7", "b8", None, "a3", "a04", "x"]


@given(st.lists(st.from_regex(r"[a-c][0-9]{0,3}", fullmatch=True)))
def test_what_is_gathered_spreads_to_the_same(texts: list[str]) -> None:
    assert list(expand_ranges(collapse_ranges(texts))) == texts
