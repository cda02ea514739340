"""What a leader knows of one follower."""

from typing import Final

from msgspec import Struct

UNKNOWN_OFFSET: Final = -1


class FollowerProgress(Struct):
    """What a leader knows of one follower, from its fetches alone."""

    log_end_offset: int = UNKNOWN_OFFSET
    """Exclusive: the offset that it last fetched from."""
    log_start_offset: int = UNKNOWN_OFFSET
    high_watermark: int = UNKNOWN_OFFSET
    """The one that it was last told."""
    broker_epoch: int = -1
    """The registration that it fetched in (KIP-903); -1 where it did not say."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    """When it was last known to have had all that the leader had."""
    _leader_end_at_last_fetch: int = UNKNOWN_OFFSET

    def update_fetch_state(
        self, *, at: int, log_start_offset: int, leader_end: int, now_ms: int
    ) -> None:
        """Take in a fetch from offset ``at``, when the leader's log ended at ``leader_end``."""
        self.log_end_offset = at
        self.log_start_offset = log_start_offset
        if at >= leader_end:
            self.last_caught_up_ms = now_ms
        elif at >= self._leader_end_at_last_fetch:  # it has all that there was at the fetch before
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self._leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
