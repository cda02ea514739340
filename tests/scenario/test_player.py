"""Scenarios played on a cluster: what each step kind does, and the report of one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.server.server import Server
from fencepost.control.routes_events import EventStream
from fencepost.scenario.formatting import describe_failure
from tests.scenario.scenarios import Told, fails, passes, played


async def test_every_step_is_told(url: str) -> None:
    told = Told()
    outcome = await played(url, "- {healthz: {}, expect: {status: ok}}\n- say: Well.", told)
    assert outcome.passed
    assert told.lines == [
        "begins test",
        "step 1 of 2",
        "passed",
        "step 2 of 2",
        "passed",
        "ended",
    ]


async def test_the_cluster_is_reset_first(url: str, server: Server) -> None:
    await passes(url, "- produce: {topic: orders, records: [a]}")
    await passes(
        url,
        """\
        - produce: {topic: orders, records: [b]}
          expect: {base_offset: 0, trace: {api: Produce, size: 1}}
        """,
    )


async def test_a_cluster_that_is_not_reset_keeps_what_it_has_and_counts_from_here(
    url: str, server: Server
) -> None:
    await passes(url, "- produce: {topic: orders, records: [a]}")
    outcome = await played(
        url,
        """\
        - produce: {topic: orders, records: [b]}
          expect: {base_offset: 1, trace: {api: Produce, size: 1}}
        - {elect: {topic: orders, leader: 2}}
        - events: {}
          until: {contains: {kind: leader_changed}}
          expect: {not: {contains: {kind: reset}}, 0: {kind: verb, details: {verb: elect}}}
        """,
        head="summary: It uses an earlier topic.\ncluster: {brokers: 3}\nsteps:\n",
        reset=False,
    )
    assert outcome.passed, describe_failure(outcome)
    assert "many" in server.cluster.controller.image.topics


async def test_what_a_follower_was_sent_counts_from_here_too(url: str) -> None:
    await passes(url, "- produce: {topic: orders, records: [a0..a9]}")
    outcome = await played(
        url,
        """\
        - {produce: {topic: orders, records: [b]}, as: b}
        - partition: {topic: orders}
          until: {high_watermark: 11}
        - replicated: {topic: orders, replica: 2}
          expect: {first_offset: 10, last_offset: 10}
        """,
        head="summary: It uses an earlier topic.\ncluster: {brokers: 3}\nsteps:\n",
        reset=False,
    )
    assert outcome.passed, describe_failure(outcome)


async def test_nothing_is_done_behind_a_step_that_fails(url: str, server: Server) -> None:
    report = await fails(
        url,
        """\
        - elect: {topic: orders, leader: 2}
          expect: {leader: 3, isr: [1, 2, 3]}
        - delete_topic: {topic: orders}
        """,
    )
    assert report[0].startswith("test.yaml:7:5: step 1 of 2: elect orders-0 leader=2")
    assert report[1] == "  leader: expected 3, came 2 (line 8)"
    assert "    leader: 2" in report
    assert "orders" in server.cluster.controller.image.topics


async def test_verbs_answer_and_are_refused(url: str) -> None:
    await passes(
        url,
        """\
        - create_topic: {name: new, partitions: 2}
          expect: {partitions: 2}
        - topics
        - expect: {size: 3, contains: {name: new}, 0: {name: many}}
        - partition: {topic: orders}
          expect: {leader: 1, replicas: {0: {role: leader}}}
        - elect: {topic: gone, leader: 1}
          expect: {refused: UNKNOWN_TOPIC_OR_PARTITION}
        """,
    )


async def test_events_are_steps_as_well(url: str) -> None:
    await passes(url, "- create_topic: {name: another}")
    await passes(
        url,
        """\
        - {events: {}, as: begin, expect: {0: {kind: reset}}}
        - events: {}
          until: {contains: {kind: topic_created}}
          expect: {not: {contains: {kind: topic_deleted}}}
        - {elect: {topic: orders, leader: 2}}
        - events: {since: $begin.0.number}
          until: {contains: {kind: leader_changed, topic: orders, details: {leader: 2}}}
        - together: [{events: {}, expect: {size: {at_least: 2}}}]
        """,
    )


async def test_events_begin_with_the_reset_however_late_it_is_told(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await passes(url, "- create_topic: {name: another}")
    watch = EventStream.watch

    async def slowly(stream: AsyncIterator[str]) -> AsyncIterator[str]:
        async for text in stream:
            yield text
            await asyncio.sleep(1.3)

    monkeypatch.setattr(EventStream, "watch", lambda feed, since: slowly(watch(feed, since)))
    await passes(
        url,
        """\
        - {events: {}, expect: {0: {kind: reset}}}
        - events: {}
          until: {2: {kind: topic_created}}
        """,
    )


async def test_an_event_that_does_not_come_fails(url: str) -> None:
    report = await fails(
        url,
        """\
        - {events: {since: 1000000}, within_ms: 1, expect: {size: 0}}
        - {events: {since: 1000000}, within_ms: 1, until: {size: {above: 0}}}
        """,
    )
    assert report[0].startswith("test.yaml:8:5: step 2 of 2: events")


async def test_a_refusal_that_nobody_expects_fails(url: str) -> None:
    report = await fails(url, "- elect: {topic: gone, leader: 1}")
    assert "  refused: expected null, came" in report[1]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in report[1]


async def test_a_refusal_that_does_not_come_fails(url: str) -> None:
    report = await fails(url, "- {healthz: {}, expect: {refused: INVALID_REQUEST}}")
    assert report[1] == '  refused: expected "INVALID_REQUEST", came null (line 7)'


async def test_what_partitions_and_the_journal_say(url: str) -> None:
    await passes(
        url,
        """\
        - {list_offsets: {topic: orders, version: 5, client: early}, as: first}
        - list_offsets: {topic: orders, version: 4}
          as: second
        - expect:
            offset: 0
            partition:
              - {topic: orders, leader: 1}
              - {topic: many, partition: 3, replicas: {size: 3}}
            trace:
              - {api: ListOffsets, size: 2}
              - {api: ListOffsets, since: second, size: 1}
              - {client_id: early, where: {version: 5, response: {topics: {size: 1}}}}
              - {api: Fetch, source: clients, size: 0}
        """,
    )


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ("partition: {topic: orders, leader: 2}", "leader of orders-0: expected 2, came 1"),
        ("partition: {topic: gone}", "gone-0: expected it, came"),
        ("trace: {api: Fetch, source: clients}", "exchanges with api=Fetch source=clients:"),
        ("trace: {api: Fetsh}", "trace: expected it, came"),
    ],
)
async def test_what_they_do_not_say(url: str, expected: str, told: str) -> None:
    report = await fails(url, f"- healthz\n- expect: {{{expected}}}")
    assert report[1].strip().startswith(told)


async def test_answers_are_referred_to(url: str) -> None:
    await passes(
        url,
        """\
        - {cluster: {}, as: before}
        - find_coordinator: {group: g, broker: $before.controller}
          expect: {broker: $before.brokers.0.id}
        - add_fault: {api: Produce, topic: orders, action: {error: NOT_ENOUGH_REPLICAS}}
          as: fault
        - produce: {topic: orders, records: [a]}
          expect: {error: NOT_ENOUGH_REPLICAS}
        - wait_for_fault: {id: $fault.id, hits: 1}
          expect: {hits: 1, left: 0}
        """,
    )


async def test_a_reference_to_what_is_not_there_fails(url: str) -> None:
    report = await fails(url, "- {cluster: {}, as: c}\n- hold: {topic: orders, broker: $c.leader}")
    assert "there is no $c.leader; there are cluster_id, brokers" in report[1]


async def test_until_asks_again(url: str) -> None:
    await passes(
        url,
        """\
        - produce: {topic: orders, records: [a0..a9], every_ms: 20}
          background: writer
        - list_offsets: {topic: orders}
          until: {offset: {at_least: 5}}
          expect: {offset: {at_most: 10}}
        - until: {partition: {topic: orders, high_watermark: 10}}
        - await: writer
          expect: {sent: 10, acknowledged: 10, attempts: 10, base_offset: 9}
        """,
    )


async def test_until_ends(url: str) -> None:
    report = await fails(
        url, "- {list_offsets: {topic: orders}, until: {offset: 1}, within_ms: 50}"
    )
    assert report[1] == "  offset: expected 1, came 0 (line 7)"


async def test_the_background_goes_on(url: str) -> None:
    await passes(
        url,
        """\
        - {hold: {topic: orders, broker: 2}, as: held}
        - {produce: {topic: orders, records: [a]}, background: slow}
        - expect:
            pending: slow
            trace: {client_id: slow, api: Produce, where: {response: null}, size: 1}
        - fetch: {topic: orders}
          expect: {values: [], high_watermark: 0}
        - release: {topic: orders, broker: 2}
        - await: slow
          expect: {base_offset: 0}
        """,
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize("given", ["version: 3", "version: 4", "instance: till-2"])
async def test_the_next_step_begins_when_a_member_has_asked_to_join(url: str, given: str) -> None:
    """At once, or with the id that it was given at first."""
    await passes(
        url,
        f"""\
        - join: {{group: g, member: first, topics: [orders]}}
        - join: {{group: g, member: second, topics: [orders], {given}}}
          background: second
          within_ms: 600000
        - join: {{group: g, member: first, topics: [orders]}}
          expect: {{generation: 2, members: 2}}
        - await: second
        """,
    )


async def test_what_is_awaited_may_not_come(url: str) -> None:
    steps = """\
        - hold: {topic: orders, broker: 2}
        - {produce: {topic: orders, records: [a]}, background: slow}
        - {await: slow, within_ms: 50}
        """
    report = await fails(url, steps)
    assert report[1] == '  expected an answer, came "none within 50 ms"'


async def test_what_is_over_is_not_pending(url: str) -> None:
    steps = """\
        - {fetch: {topic: orders}, background: quick}
        - await: quick
        - expect: {pending: quick}
        """
    report = await fails(url, steps)
    assert "pending: expected quick without an answer" in report[1]


async def test_many_at_once(url: str) -> None:
    outcome = await passes(
        url,
        """\
        - together:
            - wait_for_trace: {api: Produce}
            - produce: {topic: orders, records: [a]}
            - {produce: {topic: many, records: [a]}, repeat: 3, as: third}
        - expect: {trace: {api: Produce, size: 4}}
        - fetch: {topic: many, offset: $third.base_offset}
          expect: {values: [a], next_offset: 3}
        """,
    )
    assert len(outcome.steps[0].inner) == 3


async def test_one_of_many_fails(url: str) -> None:
    report = await fails(
        url, "- together:\n  - healthz\n  - {fetch: {topic: orders}, expect: {values: [a]}}"
    )
    assert "step 1 of 1: together: healthz; fetch orders-0" in report[0]
    assert "in it: fetch orders-0" in report[1]
    assert '  values: expected ["a"], came [] (line 9)' in report


async def test_repeating_stops_where_it_fails(url: str) -> None:
    report = await fails(
        url,
        """\
        - {produce: {topic: orders, records: [a]}, repeat: 5, expect: {base_offset: {below: 3}}}
        """,
    )
    assert report[1] == "  base_offset: expected below 3, came 3 (line 7)"


async def test_the_journal_comes_with_a_failure(url: str) -> None:
    report = await fails(
        url,
        """\
        - offsets_for_leader_epoch: {topic: orders, of: 0, epoch: 3, version: 3}
        """,
    )
    assert report[1] == '  error: expected "NONE", came "UNKNOWN_LEADER_EPOCH"'
    assert "The journal, up to here:" in report
    assert report[-2].endswith("scenario to broker 1: OffsetForLeaderEpoch v3 UNKNOWN_LEADER_EPOCH")


async def test_a_cluster_that_is_not_there() -> None:
    report = await fails("http://127.0.0.1:1", "- healthz")
    assert report == [report[0]]
    assert report[0].startswith("no control API answers at http://127.0.0.1:1")
