"""The check and its absence are compared on requests that are really checked and appended."""

from __future__ import annotations

import pytest

from bench import conditional, inside, wire
from bench.conditional import CHECKED, CONFIGS, PLAIN, Stream
from fencepost.broker.handlers import produce


def test_each_batch_says_the_offset_that_is_upcoming() -> None:
    server = inside.Inside({CHECKED: CONFIGS})
    stream = Stream(server.ask, CHECKED, 3)
    for _ in range(4):
        stream.send()
    assert server.log_end(CHECKED) == stream.offset == 12


def test_what_is_not_upcoming_is_refused_where_it_is_checked_and_only_there() -> None:
    server = inside.Inside({CHECKED: CONFIGS, PLAIN: {}})
    for topic, end in ((CHECKED, 0), (PLAIN, 2)):
        stream = Stream(server.ask, topic, 2)
        stream.offset = 7
        stream.send()
        assert server.log_end(topic) == end


def test_all_that_is_sent_is_compared() -> None:
    found = conditional.inside_pairs(2, 30)
    assert len(found) == 15
    assert all(pair.whole > 0 and pair.stripped > 0 for pair in found)


def test_a_batch_that_is_lost_is_no_measurement() -> None:
    with pytest.raises(wire.BadAnswer, match="checked ends at 3, and 4 records were produced"):
        conditional.require_end(CHECKED, 3, 4)


def test_without_the_feature_records_are_appended_and_nothing_is_checked() -> None:
    server = inside.Inside({CHECKED: CONFIGS})
    stream = Stream(server.ask, CHECKED, 1)
    handle = produce.handle
    with conditional.without_the_feature():
        stream.offset = 7
        stream.send()
    assert server.log_end(CHECKED) == 1
    assert produce.handle is handle
    stream.send()
    assert server.log_end(CHECKED) == 1
    assert [exchange.errors for exchange in server.server.journal] == [(), (2701,)]


def test_what_is_off_is_appended_whole_with_the_feature_and_without() -> None:
    found = conditional.off_pairs(4 * inside.PORTIONS)
    assert len(found) == inside.PORTIONS
