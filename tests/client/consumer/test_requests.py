from __future__ import annotations

from fencepost.client.consumer.requests import Backoff, Retry, Turn


def test_pauses_double_up_to_a_limit() -> None:
    backoff = Backoff(initial_ms=100, max_ms=1_000)
    assert [backoff.pause_ms(each) for each in range(1, 7)] == [100, 200, 400, 800, 1_000, 1_000]
    assert backoff.pause_ms(10_000) == 1_000


def test_a_retry_waits_longer_each_time_until_it_is_reset() -> None:
    retry = Retry(Backoff(initial_ms=100, max_ms=1_000))
    retry.pause(5)
    assert retry.at == 105
    retry.pause(105)
    assert retry.at == 305
    retry.reset()
    assert retry.at == 0
    retry.pause(400)
    assert retry.at == 500


def test_a_turn_knows_when_the_next_one_is_due() -> None:
    turn = Turn(now=10)
    assert turn.is_due(10)
    assert turn.wake_at is None
    assert not turn.is_due(30)
    assert not turn.is_due(20)
    assert not turn.is_due(25)
    assert turn.wake_at == 20
