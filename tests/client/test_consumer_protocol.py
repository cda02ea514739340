from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.client.consumer_protocol import (
    assign_by_range,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.client.errors import MalformedAnswer

NAMES = st.text(min_size=1, max_size=20)


@given(st.lists(NAMES))
def test_a_subscription_comes_back(topics: list[str]) -> None:
    assert decode_subscription(encode_subscription(topics)) == topics


@given(st.dictionaries(NAMES, st.lists(st.integers(0, 1000), min_size=1)))
def test_an_assignment_comes_back(wanted: dict[str, list[int]]) -> None:
    partitions = [(topic, index) for topic, indices in wanted.items() for index in indices]
    assert decode_assignment(encode_assignment(partitions)) == partitions


def test_a_leader_that_says_nothing_assigns_nothing() -> None:
    assert decode_assignment(b"") == []


@given(st.binary(max_size=40))
def test_what_is_no_assignment_is_told_as_such(data: bytes) -> None:
    try:
        decode_assignment(data)
    except MalformedAnswer:
        return


def test_a_subscription_that_is_cut_short_is_refused() -> None:
    whole = encode_subscription(["orders"])
    with pytest.raises(MalformedAnswer):
        decode_subscription(whole[:9])


def test_ranges_are_even_and_in_order_of_member_ids() -> None:
    assigned = assign_by_range({"b": ["t", "u"], "a": ["t"]}, {"t": 3, "u": 2, "not wanted": 4})
    assert assigned == {
        "a": [("t", 0), ("t", 1)],
        "b": [("t", 2), ("u", 0), ("u", 1)],
    }


@given(st.integers(1, 12), st.integers(1, 40))
def test_each_partition_has_one_owner(members: int, partitions: int) -> None:
    wanted = {f"m{number}": ["t"] for number in range(members)}
    assigned = assign_by_range(wanted, {"t": partitions})
    owned = sorted(index for each in assigned.values() for _, index in each)
    assert owned == list(range(partitions))
    sizes = [len(each) for each in assigned.values()]
    assert max(sizes) - min(sizes) <= 1
