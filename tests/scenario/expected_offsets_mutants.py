"""Brokers that do something wrong with expected offsets (KIP-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.expected_offsets import UNSPECIFIED
from fencepost.storage.log import expected_offsets
from tests.scenario.mutation import Mutant, set_attribute

if TYPE_CHECKING:
    from fencepost.protocol.byte_utils import Buffer
    from fencepost.protocol.record_reader import ReadBudget
    from fencepost.protocol.records import BatchHeader, Record
    from fencepost.storage.log.append_result import AppendRejected
    from fencepost.storage.log.config import LogConfig
    from fencepost.storage.log.staging import Staging


def _only_the_first_batch_is_compared() -> None:
    add = expected_offsets.ExpectedOffsetCheck.add

    def wrong(
        self: expected_offsets.ExpectedOffsetCheck,
        batch: Buffer,
        header: BatchHeader,
        *,
        upcoming: int,
        index: int,
        budget: ReadBudget | None = None,
    ) -> AppendRejected | None:
        if index > 0:
            return None
        return add(self, batch, header, upcoming=upcoming, index=index, budget=budget)

    set_attribute(expected_offsets.ExpectedOffsetCheck, "add", wrong)


def _compared_with_what_is_replicated() -> None:
    stage = Replica.begin_staging

    def wrong(self: Replica, *, now_ms: int) -> Staging:
        staging = stage(self, now_ms=now_ms)
        staging._end = min(staging._end, self.high_watermark)
        return staging

    set_attribute(Replica, "begin_staging", wrong)


def _no_header_is_looked_at() -> None:
    def wrong(_self: expected_offsets.ExpectedOffsetCheck, _record: Record, _index: int) -> int:
        return UNSPECIFIED

    set_attribute(expected_offsets.ExpectedOffsetCheck, "_stated", wrong)


def _keys_make_no_difference() -> None:
    init = expected_offsets.ExpectedOffsetCheck.__init__

    def wrong(
        self: expected_offsets.ExpectedOffsetCheck,
        config: LogConfig,
        *,
        log_start_offset: int,
        last_of_key: expected_offsets.LastOfKey,
    ) -> None:
        init(self, config, log_start_offset=log_start_offset, last_of_key=last_of_key)
        self._by_key = False

    set_attribute(expected_offsets.ExpectedOffsetCheck, "__init__", wrong)


MUTANTS: Final = {
    "kip-27-competing-writers": Mutant(
        does="Of several batches in a request the first one has to match, and the others need not.",
        noticed="Here its first batch would fit, and its second one expects",
        apply=_only_the_first_batch_is_compared,
    ),
    "kip-27-bulk-load": Mutant(
        does="What is expected is compared with the high watermark, not with the end of the log.",
        noticed="So it sends the same five lines.",
        apply=_compared_with_what_is_replicated,
    ),
    "kip-27-unmodified-client": Mutant(
        does="No broker looks at headers.",
        noticed="The same client once more, with the same header.",
        apply=_no_header_is_looked_at,
    ),
    "kip-27-per-key": Mutant(
        does="A record with a key has to be where it is expected, as any other has to be.",
        noticed="But it writes about Bob, where it is up to date.",
        apply=_keys_make_no_difference,
    ),
}
