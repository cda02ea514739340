"""The actions of a consumer that finds leaders and truncations by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fencepost.broker.core.scheduler import Clock
from fencepost.broker.server.server import Server
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.scenario.document import ScenarioFileError
from fencepost.scenario.formatting import success_note
from tests.harness.in_process_server import running
from tests.scenario.scenarios import fails, passes, scenario


@pytest.fixture
async def server(clock: Clock) -> AsyncIterator[Server]:
    async with running(clock=clock, dialect=KIP_320_DRAFT) as started:
        yield started


CUT = """\
- produce: {topic: orders, records: [a0..a9]}
- hold: {topic: orders, broker: 3, leave_isr: true}
- produce: {topic: orders, records: [a10..a19]}
- open_consumer:
    {consumer: c, topic: orders, offset: 0, auto_offset_reset: POLICY, dialect: DIALECT}
- poll: {consumer: c, count: 20}
  expect: {values: [a0..a19], start_offset: 0, position: 20, epoch: 0, truncations: []}
- elect: {topic: orders, leader: 3, unclean: true}
- produce: {topic: orders, records: [b10..b24]}
"""
OPEN = "open_consumer: {consumer: c, topic: orders}"
FINAL, DRAFT = "null", "kip-320-draft"
DIALECTS = pytest.mark.parametrize("dialect", [FINAL, DRAFT])


def cut(policy: str, dialect: str) -> str:
    """Steps after which a consumer stands at 20, in a log that was truncated to 10."""
    return CUT.replace("POLICY", policy).replace("DIALECT", dialect)


@DIALECTS
async def test_with_a_policy_it_goes_on_where_the_log_was_cut(url: str, dialect: str) -> None:
    await passes(
        url,
        f"""\
{cut("latest", dialect)}\
- poll: {{consumer: c, count: 15}}
  expect:
    values: [b10..b24]
    records: {{0: {{offset: 10, epoch: 1}}}}
    start_offset: 10
    position: 25
    epoch: 1
    message: null
    truncations: [{{position: 20, epoch: 0, divergent_offset: 10}}]
- poll: {{consumer: c, wait_ms: 0}}
  expect: {{values: [], start_offset: 25, position: 25}}
""",
    )


@pytest.mark.parametrize(
    ("dialect", "error", "epoch"),
    [(FINAL, "LogTruncationError", 0), (DRAFT, "TruncatedPartitionError", -1)],
)
async def test_without_a_policy_the_exception_is_the_answer(
    url: str, dialect: str, error: str, epoch: int
) -> None:
    await passes(
        url,
        f"""\
{cut("none", dialect)}\
- poll: {{consumer: c}}
  expect:
    failed: {error}
    error: null
    message: "the log was truncated: orders-0 at 20, divergent offset 10"
    divergent_offset: 10
    position: 20
    start_offset: 20
- seek: {{consumer: c, offset: 10, epoch: 0}}
- poll: {{consumer: c, count: 15}}
  expect: {{values: [b10..b24], failed: null}}
""",
    )


async def test_an_exception_that_no_step_expects_fails_the_scenario(url: str) -> None:
    report = await fails(url, f"{cut('none', FINAL)}- poll: {{consumer: c}}")
    assert report[1] == '  failed: expected null, came "LogTruncationError"'


async def test_an_error_of_kafka_is_answered_by_its_name(url: str) -> None:
    await passes(
        url,
        """\
        - add_fault: {api: Fetch, client_id: c, action: {error: TOPIC_AUTHORIZATION_FAILED}}
        - open_consumer: {consumer: c, topic: orders, offset: 0}
        - poll: {consumer: c}
          expect: {error: TOPIC_AUTHORIZATION_FAILED, failed: null, position: null}
        """,
    )


@DIALECTS
async def test_a_group_goes_on_where_its_consumer_has_committed(url: str, dialect: str) -> None:
    version, timestamp = ("6", 8) if dialect == DRAFT else ("{above: 8}", -1)
    await passes(
        url,
        f"""\
- produce: {{topic: orders, records: [{{value: a, timestamp: 7}}, {{value: b, timestamp: 8}}]}}
- open_consumer: {{consumer: one, topic: orders, group: g, offset: 0, dialect: {dialect}}}
- poll: {{consumer: one, count: 2}}
- commit_position: {{consumer: one}}
  expect: {{position: 2}}
- close_consumer: {{consumer: one}}
- committed: {{group: g, topic: orders}}
  expect: {{offset: 2, epoch: 0}}
- open_consumer: {{consumer: one, topic: orders, group: g, dialect: {dialect}}}
- poll: {{consumer: one, wait_ms: 20}}
  until: {{position: 2}}
  expect: {{epoch: 0, timestamp: {timestamp}, values: []}}
- expect: {{trace: {{api: OffsetCommit, client_id: one, where: {{version: {version}}}}}}}
""",
    )


async def test_a_position_that_was_sought_has_what_the_step_says(url: str) -> None:
    await passes(
        url,
        """\
        - open_consumer: {consumer: c, topic: orders, dialect: kip-320-draft}
        - seek: {consumer: c, offset: 3, epoch: 0, timestamp: 7}
          expect: {position: 3, epoch: 0, timestamp: 7}
        """,
    )


async def test_a_consumer_may_be_told_of_the_cluster_by_one_broker(url: str) -> None:
    await passes(
        url,
        """\
        - open_consumer: {consumer: c, client: reader, topic: orders, broker: 2, offset: 0}
        - poll: {consumer: c, wait_ms: 20}
          until: {position: 0}
        - expect: {trace: {api: Metadata, client_id: reader, broker: 2}}
        - expect: {trace: {api: Metadata, client_id: reader, broker: 1, size: 0}}
        """,
    )


async def test_consumers_stand_side_by_side_in_one_line(url: str) -> None:
    outcome = await passes(
        url,
        f"""\
{cut("earliest", DRAFT)}\
- open_consumer: {{consumer: d, topic: orders, offset: 20, epoch: 0}}
- open_consumer: {{consumer: e, topic: orders, dialect: kip-320-draft}}
- poll: {{consumer: c}}
- poll: {{consumer: d}}
  expect: {{failed: LogTruncationError}}
- poll: {{consumer: e}}
  expect: {{failed: NoOffsetForPartitionError}}
- open_consumer: {{consumer: f, topic: orders, offset: 3}}
- compare_consumers: {{consumers: [c, d, e, f]}}
  expect:
    outcomes:
    - {{consumer: c, start_offset: 10, failed: null}}
    - {{consumer: d, start_offset: 20, failed: LogTruncationError, divergent_offset: 10}}
    - {{consumer: e, start_offset: null, position: null}}
    - {{consumer: f, start_offset: null, position: 3}}
""",
    )
    last = outcome.steps[-1]
    assert success_note(last.step, last.answer) == (
        "c: truncation located at 10, went on at 10"
        " | d: raised LogTruncationError, truncation located at 10, stays at 20"
        " | e: raised NoOffsetForPartitionError"
        " | f: has not polled"
    )


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("poll: {consumer: c}", "no consumer 'c' was opened"),
        (f"{OPEN}\n- {OPEN}", "the consumer 'c' is open already"),
        (
            f"{OPEN}\n- close_consumer: {{consumer: c}}\n- seek: {{consumer: c, offset: 0}}",
            "the consumer 'c' is closed",
        ),
        (
            f"{OPEN}\n- commit_position: {{consumer: c}}",
            "the consumer 'c': the consumer has no group_id",
        ),
        ("open_consumer: {consumer: c, topic: orders, broker: 9}", "there is no broker 9"),
    ],
)
async def test_a_step_that_cannot_be_done_says_why(url: str, step: str, why: str) -> None:
    assert f"  {why}" in await fails(url, f"- {step}")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (
            "open_consumer: {consumer: c, topic: t, auto_offset_reset: closest}",
            "auto_offset_reset closest is of KIP-320's earlier draft",
        ),
        (
            "open_consumer: {consumer: c, topic: t, auto_offset_reset: soon}",
            "auto_offset_reset 'soon' is none of latest, earliest, none",
        ),
        ("open_consumer: {consumer: c, topic: t, dialect: kip-27}", "there is no dialect 'kip-27'"),
        ("open_consumer: {consumer: c, topic: t, group: ''}", "group_id is empty"),
        (
            "open_consumer: {consumer: c, topic: t, epoch: 3}",
            "an epoch is of the record before an offset, which is left out",
        ),
        (
            "open_consumer: {consumer: c, topic: t, version: 9}",
            "a consumer chooses its version by itself",
        ),
        ("poll: {consumer: c, broker: 1}", "a consumer chooses its broker by itself"),
        ("poll: {consumer: c, count: 0}", "count: input should be greater than or equal to 1"),
        ("seek: {consumer: c, offset: -1}", "offset: input should be greater than or equal to 0"),
        ("poll: {}", "consumer is left out"),
        ("compare_consumers: {}", "consumers is left out"),
    ],
)
def test_a_wrong_step_is_refused_before_anything_is_done(step: str, why: str) -> None:
    with pytest.raises(ScenarioFileError) as refused:
        scenario(f"- {step}")
    assert why in str(refused.value)
    assert str(refused.value).startswith("test.yaml:7:")
