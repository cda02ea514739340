"""Every client action, as a step of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fencepost.scenario import actions
from fencepost.scenario.actions.executor import ACTIONS, defined_actions
from tests.scenario.scenarios import fails, passes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_module_with_actions_is_all_that_a_new_action_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wait.py").write_text(
        "from fencepost.scenario.actions.context import ActionAnswer, ActionBody\n"
        "from fencepost.scenario.actions.context import Action\n"
        "async def wait(clients, context, body): return None\n"
        "ACTIONS = (Action('wait', None, ActionBody, ActionAnswer, 'Wait.', wait),)\n"
    )
    monkeypatch.setattr(actions, "__path__", [*actions.__path__, str(tmp_path)])
    assert {each.name for each in defined_actions()} == {*ACTIONS, "wait"}


async def test_records_with_all_they_have(url: str) -> None:
    await passes(
        url,
        """\
        - produce:
            topic: orders
            compression: zstd
            records: [a0..a2, {key: k, value: null, headers: {h: x, n: null}, timestamp: 7}]
        - fetch: {topic: orders, offset: 2}
          expect:
            values: [a2, null]
            records: {1: {offset: 3, epoch: 0, key: k, headers: {h: x, n: null}, timestamp: 7}}
            next_offset: 4
            corrupt: false
        - list_offsets: {topic: orders, at: 7}
          expect: {offset: 0}
        """,
    )


@pytest.mark.parametrize("version", [4, 12, 13, 18])
async def test_an_epoch_and_a_version_of_ones_choice(url: str, version: int) -> None:
    await passes(
        url,
        f"""\
        - fetch: {{topic: orders, epoch: 4, version: {version}}}
          expect: {{error: {"UNKNOWN_LEADER_EPOCH" if version > 8 else "NONE"}, version: {version}}}
        - expect: {{trace: {{source: clients, size: 1, where: {{version: {version}}}}}}}
        """,
    )


async def test_a_broker_of_ones_choice(url: str) -> None:
    await passes(
        url,
        """\
        - list_offsets: {topic: orders, broker: 3}
          expect: {error: NOT_LEADER_OR_FOLLOWER, broker: 3}
        - produce: {topic: orders, records: [a], broker: 2, version: 13}
          expect: {error: NOT_LEADER_OR_FOLLOWER, leader: {id: 1, epoch: 0}}
        - metadata: {topic: orders, broker: 2}
          expect: {leader: 1, leader_epoch: 0, isr: [1, 2, 3], brokers: [1, 2, 3], broker: 2}
        - metadata: {topic: gone}
          expect: {error: UNKNOWN_TOPIC_OR_PARTITION, leader: -1}
        """,
    )


async def test_no_answer_is_told_as_such(url: str) -> None:
    await passes(
        url,
        """\
        - add_fault: {api: Produce, action: {disconnect: after}}
        - produce: {topic: orders, records: [a]}
          expect: {failed: disconnected, error: null, broker: 1}
        - add_fault: {api: Fetch, client_id: scenario, action: drop}
        - fetch: {topic: orders, timeout_ms: 50}
          expect: {failed: timed_out}
        - fetch: {topic: orders}
          expect: {values: [a]}
        - kill_broker: {broker: 3}
        - fetch: {topic: orders, broker: 3}
          expect: {failed: unreachable}
        - kill_broker: {broker: 2, fence: never}
        - create_topic: {name: lonely, assignments: [[1]]}
        - kill_broker: {broker: 1}
        - fetch: {topic: lonely}
          expect: {failed: no_leader}
        """,
    )


async def test_a_failure_that_nobody_expects(url: str) -> None:
    report = await fails(url, "- fetch: {topic: orders, broker: 9}")
    assert report[1] == '  failed: expected null, came "unreachable"'


async def test_a_retry_of_an_idempotent_producer_is_stored_once(url: str) -> None:
    await passes(
        url,
        """\
        - produce: {topic: orders, producer: p, records: [a0..a4]}
        - produce: {topic: orders, producer: p, records: [b]}
          expect: {base_offset: 5}
        - produce: {topic: orders, producer: p, records: [a0..a4], sequence: 0}
          expect: {base_offset: 0}
        - produce: {topic: orders, producer: p, records: [c]}
          expect: {base_offset: 6}
        - produce: {topic: orders, producer: p, records: [d], sequence: 9}
          expect: {error: OUT_OF_ORDER_SEQUENCE_NUMBER}
        - produce: {topic: orders, producer: other, records: [e]}
          expect: {base_offset: 7}
        - produce: {topic: orders, records: [f], acks: 0}
        - until: {partition: {topic: orders, high_watermark: 9}}
        """,
    )


CHECKED = "configs: {check.expected.offsets: true}"


async def test_batches_of_one_request_to_one_partition(url: str) -> None:
    await passes(
        url,
        f"""\
        - create_topic: {{name: checked, assignments: [[1]], {CHECKED}}}
        - produce:
            topic: checked
            batches: [{{records: [a0..a2], base_offset: 0}}, {{records: [a3], base_offset: 3}}]
          expect: {{base_offset: 0, sent: 2, acknowledged: 2, attempts: 1, partitions: {{size: 1}}}}
        - produce:
            topic: checked
            batches:
              - {{records: [b], base_offset: -1}}
              - {{records: [{{value: c}}, d], base_offset: 7}}
          expect:
            error: EXPECTED_OFFSET_MISMATCH
            base_offset: -1
            record_errors: [{{index: 1, message: "Expected offset 7, upcoming offset 5"}}]
            sent: 2
            acknowledged: 0
        - fetch: {{topic: checked}}
          expect: {{values: [a0..a3]}}
        """,
    )


async def test_batches_of_one_request_to_several_partitions(url: str) -> None:
    await passes(
        url,
        f"""\
        - create_topic: {{name: checked, assignments: [[2], [2]], {CHECKED}}}
        - create_topic: {{name: plain, assignments: [[2], [1]]}}
        - produce:
            topic: checked
            batches:
              - {{records: [a]}}
              - {{partition: 1, records: [b]}}
              - {{topic: plain, records: [c]}}
              - {{topic: plain, partition: 1, records: [d]}}
          expect:
            broker: 2
            error: NOT_LEADER_OR_FOLLOWER
            partitions:
              - {{topic: checked, partition: 0, error: NONE, base_offset: 0}}
              - {{topic: checked, partition: 1, error: NONE}}
              - {{topic: plain, partition: 0, error: NONE}}
              - {{topic: plain, partition: 1, error: NOT_LEADER_OR_FOLLOWER, base_offset: -1}}
        - produce:
            topic: checked
            partition: 1
            batches:
              - {{records: [e], base_offset: 1}}
              - {{partition: 0, records: [f], base_offset: 3}}
          expect:
            error: EXPECTED_OFFSET_MISMATCH
            partitions:
              - {{partition: 1, record_errors: [], message: {{contains: checked-0}}}}
              - {{partition: 0, record_errors: {{size: 1}}}}
            message: {{contains: in the same request}}
        - fetch: {{topic: checked, partition: 1}}
          expect: {{values: [b]}}
        """,
    )


async def test_a_refusal_is_an_event_of_each_partition_that_does_not_match(url: str) -> None:
    await passes(
        url,
        f"""\
        - create_topic: {{name: checked, assignments: [[2], [2], [2]], {CHECKED}}}
        - produce:
            topic: checked
            client: writer
            batches:
              - {{partition: 0, records: [a], base_offset: 7}}
              - {{partition: 0, records: [b], base_offset: 9}}
              - {{partition: 1, records: [c]}}
              - {{partition: 2, records: [d], base_offset: 3}}
          expect: {{error: EXPECTED_OFFSET_MISMATCH}}
        - events: {{since: 0}}
          until: {{contains: {{kind: publish_refused, partition: 2, details: {{expected: 3}}}}}}
        - expect:
            contains:
              kind: publish_refused
              topic: checked
              partition: 0
              broker: 2
              details: {{expected: 7, upcoming: 0, last_of_key: null, client_id: writer}}
        - expect: {{not: {{contains: {{kind: publish_refused, partition: 1}}}}}}
        """,
    )


async def test_a_request_of_several_batches_is_a_retry_batch_by_batch(url: str) -> None:
    await passes(
        url,
        f"""\
        - create_topic: {{name: checked, assignments: [[1]], {CHECKED}}}
        - produce: {{topic: checked, producer: p, records: [a, b], base_offset: 0}}
        - produce:
            topic: checked
            producer: p
            batches:
              - {{records: [a, b], base_offset: 0, sequence: 0}}
              - {{records: [c], base_offset: 2}}
          expect: {{error: NONE, base_offset: 0}}
        - fetch: {{topic: checked}}
          expect: {{values: [a, b, c]}}
        """,
    )


async def test_a_writer_says_for_each_record_where_it_expects_it(url: str) -> None:
    await passes(
        url,
        f"""\
        - create_topic: {{name: checked, assignments: [[1]], {CHECKED}}}
        - produce: {{topic: checked, records: [a0..a9], base_offset: 0, every_ms: 0}}
          expect: {{acknowledged: 10, attempts: 10, base_offset: 9}}
        - produce: {{topic: checked, records: [b0..b9], base_offset: 7, every_ms: 0}}
          expect: {{error: EXPECTED_OFFSET_MISMATCH, sent: 1, acknowledged: 0}}
        - produce: {{topic: checked, records: [b0, b1], base_offset: -1, every_ms: 0}}
          expect: {{base_offset: 11}}
        """,
    )


async def test_only_what_is_refused_for_a_while_is_sent_again(url: str) -> None:
    await passes(
        url,
        """\
        - create_topic: {name: plain, assignments: [[1], [1]]}
        - add_fault:
            api: Produce
            topic: plain
            partition: 1
            action: {error: NOT_ENOUGH_REPLICAS}
        - produce:
            topic: plain
            retry_ms: 10000
            batches: [{records: [a]}, {partition: 1, records: [b]}]
          expect: {error: NONE, attempts: 2}
        - fetch: {topic: plain}
          expect: {values: [a]}
        - fetch: {topic: plain, partition: 1}
          expect: {values: [b]}
        """,
    )


async def test_a_producer_that_retries_lives_through_elections(url: str) -> None:
    await passes(
        url,
        """\
        - produce: {topic: orders, producer: p, records: [a0..a29], every_ms: 5, retry_ms: 20000}
          background: writer
        - elect: {topic: orders, leader: 2}
        - kill_broker: {broker: 2}
        - start_broker: {broker: 2}
        - elect: {topic: orders, leader: 2}
        - await: writer
          expect: {sent: 30, acknowledged: 30}
        - fetch: {topic: orders}
          expect: {values: [a0..a29]}
        """,
    )


async def test_what_is_retried_ends(url: str) -> None:
    await passes(
        url,
        """\
        - add_fault: {api: Produce, count: null, action: {error: NOT_ENOUGH_REPLICAS}}
        - produce: {topic: orders, records: [a], retry_ms: 3000}
          expect: {error: NOT_ENOUGH_REPLICAS, attempts: {above: 1}, sent: 1, acknowledged: 0}
        """,
    )


async def test_groups(url: str) -> None:
    await passes(
        url,
        """\
        - committed: {group: g, topic: orders}
          expect: {offset: -1}
        - commit: {group: g, topic: orders, offset: 5, epoch: 2, metadata: note}
        - committed: {group: g, topic: orders}
          expect: {offset: 5, epoch: 2, metadata: note}
        - join: {group: h, member: m1, topics: [many]}
          expect: {generation: 1, leads: true, members: 1, assigned: [many-0..many-3], joins: 1}
        - {join: {group: h, member: m2, topics: [many]}, background: second}
        - heartbeat: {member: m1}
          expect: {error: REBALANCE_IN_PROGRESS}
        - expect: {pending: second}
        - join: {group: h, member: m1, topics: [many]}
          expect: {generation: 2, assigned: {size: 2}}
        - await: second
          expect: {generation: 2, leads: false, assigned: {size: 2}}
        - commit: {group: h, member: m2, topic: many, offset: 3}
        - leave: {member: m2}
        - heartbeat: {member: m2}
          expect: {error: UNKNOWN_MEMBER_ID}
        """,
    )


async def test_members_that_live_on(url: str) -> None:
    await passes(
        url,
        """\
        - together:
            - join: {group: g, member: m1, topics: [many], heartbeat_ms: 10}
            - join: {group: g, member: m2, topics: [many], heartbeat_ms: 10}
        - {member: {member: m1}, until: {assigned: {size: 2}}}
        - {member: {member: m2}, until: {assigned: {size: 2}}}
        - {find_coordinator: {group: g}, as: old}
        - kill_broker: {broker: $old.coordinator}
        - join: {group: g, member: m3, topics: [many], heartbeat_ms: 10}
        - {member: {member: m1}, until: {assigned: {size: {at_most: 2}}, broker: null}}
        - leave: {member: m2}
        - leave: {member: m3}
        - {member: {member: m1}, until: {assigned: [many-0..many-3]}}
        """,
    )


async def test_a_member_that_nobody_is(url: str) -> None:
    report = await fails(url, "- heartbeat: {member: m1}")
    assert report[1] == "  no member 'm1' has joined"


async def test_any_request_at_all(url: str) -> None:
    await passes(
        url,
        """\
        - call: {api: metadata, version: 12, request: {topics: [{name: orders}]}}
          expect: {response: {topics: {0: {name: orders, partitions: {size: 1}}}}}
        - call: {api: 19, request: {topics: [{name: bad name, num_partitions: 1}]}}
          expect: {error: INVALID_TOPIC_EXCEPTION}
        """,
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("api: Fetsh", "there is no API 'Fetsh'; did you mean Fetch?"),
        ("api: Fetch, version: 99", "version 99 of Fetch is not one from 4 to 18"),
        (
            "api: Fetch, version: 12, request: {offset: 3}",
            "Fetch has no field 'offset'; it has",
        ),
        ("api: Fetch, request: {max_bytes: lots}", "Fetch.max_bytes: 'lots' is not a number"),
        ("api: Fetch, request: {topics: orders}", "Fetch.topics is to be a list"),
        ("api: Fetch, request: {topics: [orders]}", "Fetch.topics[0] is to be a mapping"),
    ],
)
async def test_what_is_no_request(url: str, call: str, told: str) -> None:
    report = await fails(url, f"- call: {{{call}}}")
    assert report[1].startswith(f"  {told}")


async def test_what_a_follower_was_sent(url: str) -> None:
    await passes(
        url,
        """\
        - hold: {topic: orders, broker: 2}
        - replicated: {topic: orders, replica: 2}
          expect: {first_offset: -1, last_offset: -1, bytes: 0, of_bytes: 0, percent: 0.0}
        - produce: {topic: orders, records: [a0..a4], acks: 1}
        - produce: {topic: orders, records: [b0..b4], acks: 1}
        - replicated: {topic: orders, replica: 2}
          expect: {records: 0, percent: 0.0, of_bytes: {above: 100}}
        - replicated: {topic: orders, replica: 3}
          expect: {first_offset: 0, last_offset: 9, records: 10, percent: 100.0}
        """,
    )
