from __future__ import annotations

from fencepost.broker.core.sampled_rate import SampledRate


def test_a_burst_may_be_as_large_as_all_windows_but_one_allow() -> None:
    rate = SampledRate(samples=11, window_ms=1000)
    rate.record(100, 0)
    assert not rate.is_above(10, 0)
    assert rate.delay_ms(10, 0) == 0
    rate.record(1, 5)
    assert rate.is_above(10, 5)
    assert rate.delay_ms(10, 5) > 0


def test_after_the_delay_it_is_not_above_any_more() -> None:
    rate = SampledRate(samples=3, window_ms=1000)
    rate.record(50, 0)
    delay = rate.delay_ms(10, 0)
    assert delay == 3000, "30 more than 2 s allow, at 10 a second"
    assert rate.is_above(10, delay - 1)
    assert not rate.is_above(10, delay)


def test_old_windows_are_forgotten() -> None:
    rate = SampledRate(samples=2, window_ms=1000)
    rate.record(1_000_000, 0)
    assert rate.is_above(1, 1999)
    assert not rate.is_above(1, 2000)


def test_what_happened_in_several_windows_counts_over_their_time() -> None:
    rate = SampledRate(samples=3, window_ms=1000)
    for second in range(3):
        rate.record(10, second * 1000)
    assert rate.is_above(9, 2500)
    assert not rate.is_above(12, 2500), "30 in 2.5 s"
    assert rate.is_above(11, 2500)
