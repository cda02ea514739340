"""The consumers that a schedule names by number: each policy, final and in the draft of KIP-320."""

from typing import Final

from msgspec import Struct

from fencepost.client.consumer.config import ConsumerConfig, make_config
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.simulation.setup import DRAFT_CONSUMERS, FINAL_CONSUMERS

_MOST_RECORDS: Final = 5
"""Of a poll, so that an answer is handed out in parts."""
_FETCH_BYTES: Final = 500
"""Some six batches, so that a consumer stays behind for a while."""
_WAIT_MS: Final = 500


class ConsumerKind(Struct, frozen=True, kw_only=True):
    """One consumer."""

    policy: str
    """Its ``auto_offset_reset``."""
    is_drafted: bool = False
    """Whether it speaks the earlier draft of KIP-320."""
    waits: bool = False
    """Whether its fetches wait for records."""

    def config(self, number: int) -> ConsumerConfig:
        """Its parameters. It retries at once: how soon is up to the schedule."""
        return make_config(
            client_id=f"application-{number}",
            group_id=f"group-{number}",
            auto_offset_reset=self.policy,
            dialect=KIP_320_DRAFT.name if self.is_drafted else None,
            fetch_max_wait_ms=_WAIT_MS if self.waits else 0,
            max_partition_fetch_bytes=_FETCH_BYTES,
            max_poll_records=_MOST_RECORDS,
            metadata_max_age_ms=5_000,
            retry_backoff_ms=0,
            retry_backoff_max_ms=0,
            reconnect_backoff_ms=500,
        )


KINDS: Final = {
    1: ConsumerKind(policy="none"),
    2: ConsumerKind(policy="earliest", waits=True),
    3: ConsumerKind(policy="latest"),
    4: ConsumerKind(policy="by_duration:PT20S"),
    5: ConsumerKind(policy="none", is_drafted=True),
    6: ConsumerKind(policy="closest", is_drafted=True),
    7: ConsumerKind(policy="earliest", is_drafted=True, waits=True),
    8: ConsumerKind(policy="latest", is_drafted=True),
    9: ConsumerKind(policy="by_duration:PT20S", is_drafted=True),
}
"""By number."""


def kinds_of(consumers: str) -> dict[int, ConsumerKind]:
    """The consumers of a schedule, by what its first line says of them."""
    if consumers == DRAFT_CONSUMERS:
        return KINDS
    if consumers == FINAL_CONSUMERS:
        return {number: kind for number, kind in KINDS.items() if not kind.is_drafted}
    return {}
