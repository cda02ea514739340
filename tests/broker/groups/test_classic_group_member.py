"""The topics in a consumer's metadata, which may be any bytes."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.groups.classic_group_member import MalformedSubscription, subscribed_topics
from tests.broker.groups.scripts import subscription


@settings(database=None)
@given(st.frozensets(st.text("abc.-_", min_size=1, max_size=9)))
def test_reads_the_topics(topics: frozenset[str]) -> None:
    assert subscribed_topics(subscription(*topics)) == topics


def test_the_metadata_may_end_after_the_topics() -> None:
    assert subscribed_topics(b"\0\0\0\0\0\2\0\1t\0\1u") == {"t", "u"}


def test_later_versions_have_more_behind_the_topics() -> None:
    owned_and_rack = b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"\0\0\0\1" + b"\0\4rack"
    version_3 = struct.pack(">hi", 3, 1) + b"\0\1t" + owned_and_rack
    assert subscribed_topics(version_3) == {"t"}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\0\0\0\0\0",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0\1\0\5abc",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\xff\xff\0\0\0\0",
    ],
)
def test_other_bytes_are_malformed(metadata: bytes) -> None:
    with pytest.raises(MalformedSubscription):
        subscribed_topics(metadata)


@settings(database=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_topics_or_malformed(metadata: bytes) -> None:
    with contextlib.suppress(MalformedSubscription):
        assert all(isinstance(topic, str) for topic in subscribed_topics(metadata))
