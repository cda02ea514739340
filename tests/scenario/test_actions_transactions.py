"""The actions of transactional producers, as steps of a scenario."""

from __future__ import annotations

import pytest

from fencepost.scenario.document import ScenarioFileError
from tests.scenario.scenarios import passes, played, scenario


async def test_transactions(url: str) -> None:
    await passes(
        url,
        """\
        - begin_transaction: {producer: p, transactional_id: x}
          expect: {outcome: done, producer_epoch: 0}
        - send_in_transaction: {producer: p, topic: orders, records: [a0..a1]}
          expect: {base_offset: 0}
        - send_offsets: {producer: p, group: g, topic: many, offset: 5, epoch: 2}
        - fetch: {topic: orders, isolation: read_committed}
          expect: {values: []}
        - committed: {group: g, topic: many, stable: true}
          expect: {error: UNSTABLE_OFFSET_COMMIT}
        - end_transaction: {producer: p}
          expect: {outcome: done, producer_epoch: 1}
        - fetch: {topic: orders, isolation: read_committed}
          expect: {values: [a0, a1]}
        - committed: {group: g, topic: many}
          expect: {offset: 5, epoch: 2}
        - begin_transaction: {producer: p}
        - send_in_transaction: {producer: p, topic: orders, records: [b]}
        - begin_transaction: {producer: successor, transactional_id: x}
          expect: {outcome: done}
        - send_in_transaction: {producer: p, topic: orders, records: [late]}
          expect: {outcome: must_abort, error: INVALID_PRODUCER_EPOCH}
        - end_transaction: {producer: p, commit: false}
          expect: {outcome: fenced, error: PRODUCER_FENCED}
        - send_in_transaction: {producer: successor, topic: orders, records: [c]}
        - end_transaction: {producer: successor}
        - expect_records: {topic: orders, value: c, isolation: read_committed}
        """,
    )


async def test_a_transaction_that_has_not_begun_is_a_mistake_in_the_file(url: str) -> None:
    outcome = await played(url, "- end_transaction: {producer: p}")
    assert not outcome.passed
    assert "producer 'p' has not begun a transaction" in str(outcome)


def test_a_transactional_producer_takes_no_broker() -> None:
    with pytest.raises(ScenarioFileError, match="finds its brokers and versions by itself"):
        scenario("- begin_transaction: {producer: p, broker: 1}")


async def test_a_request_of_ones_own_belongs_to_the_transaction_of_its_producer(url: str) -> None:
    await passes(
        url,
        """\
        - begin_transaction: {producer: p}
        - send_in_transaction: {producer: p, topic: orders, records: [a0]}
        - produce: {topic: orders, producer: p, records: [a1]}
          expect: {base_offset: 1}
        - produce: {topic: orders, producer: p, records: [a1], sequence: 1}
          expect: {base_offset: 1}
        - send_in_transaction: {producer: p, topic: orders, records: [a2]}
          expect: {base_offset: 2}
        - fetch: {topic: orders, isolation: read_committed}
          expect: {values: []}
        - end_transaction: {producer: p}
        - fetch: {topic: orders, isolation: read_committed}
          expect: {values: [a0, a1, a2], next_offset: 4}
        """,
    )


async def test_a_producer_that_is_delayed_acts_in_the_background_under_its_own_name(
    url: str,
) -> None:
    await passes(
        url,
        """\
        - begin_transaction: {producer: p}
        - send_in_transaction: {producer: p, topic: orders, records: [a]}
        - add_fault: {api: Produce, client_id: p, action: {delay: 100}}
        - send_in_transaction: {producer: p, topic: orders, records: [b]}
          background: slow
          within_ms: 5000
        - expect: {trace: {api: Produce, client_id: p, size: 2}}
        - await: slow
          expect: {outcome: done, base_offset: 1}
        - end_transaction: {producer: p}
        """,
    )
