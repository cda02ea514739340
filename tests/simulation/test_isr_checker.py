"""How long a follower lags, as far as its leader knows."""

from typing import cast

from fencepost.broker.replication.replica import Replica
from fencepost.simulation.isr_checker import LeaderTerm


def test_a_follower_lags_since_its_leader_got_the_first_record_that_it_lacks() -> None:
    term = LeaderTerm(cast(Replica, None), epoch=3)
    term.see_end(10, 0)
    assert term.lags_since_ms(10) is None
    term.see_end(12, 100)
    term.see_end(12, 150)
    term.see_end(20, 200)
    assert [term.lags_since_ms(at) for at in (-1, 9, 10, 11, 12, 19)] == [0, 0, 100, 100, 200, 200]
    assert term.lags_since_ms(20) is None
