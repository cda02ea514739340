"""Rates as Apache Kafka measures them for its quotas: sums in windows of time.

A rate is what the last windows have, over their time; until there are all but one of them, over the
time of all but one. So a quota lets a burst of some seconds through (``*.quota.window.num`` and
``*.quota.window.size.seconds``: 11 of 1 s), and then holds what is more back for as long as it
takes to come down to the bound.
"""

from collections import deque

_SECOND_MS = 1000


class SampledRate:
    """What happens a second.

    :param samples: Windows that count, the present one among them.
    :param window_ms: How long each is.
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._windows: deque[list[int]] = deque()
        """When each began (ms), and its sum; the oldest first."""

    def record(self, amount: int, now_ms: int) -> None:
        """Count what happens now."""
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += amount

    def is_above(self, bound: int, now_ms: int) -> bool:
        """Whether it is more than a bound (a second)."""
        total, span_ms = self._measured(now_ms)
        return total * _SECOND_MS > bound * span_ms

    def delay_ms(self, bound: int, now_ms: int) -> int:
        """How long nothing more may happen, so that the rate comes down to a bound (a second)."""
        total, span_ms = self._measured(now_ms)
        excess = total * _SECOND_MS - bound * span_ms
        return max(-(-excess // max(bound, 1)), 0)

    def _measured(self, now_ms: int) -> tuple[int, int]:
        """The sum, and the time in which it came together (ms)."""
        while self._windows and now_ms - self._windows[0][0] >= self._samples * self._window_ms:
            self._windows.popleft()
        least_ms = max(self._samples - 1, 1) * self._window_ms
        elapsed_ms = now_ms - self._windows[0][0] if self._windows else 0
        full = elapsed_ms // self._window_ms
        missing = max(self._samples - 1 - full, 0) * self._window_ms
        return sum(amount for _, amount in self._windows), max(elapsed_ms + missing, least_ms)
