"""After any sequence of requests and commits the log alone rebuilds the state of all groups."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fencepost.broker.coordinator.shard import EndTransaction, LoggedRecord
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.records import ReplayedState, decode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupResponse
from tests.broker.groups.workbench import Workbench
from tests.harness.fake_log import FakeLog

groups = st.sampled_from(["g", "h"])
slots = st.integers(0, 3)
"""Clients; each has the member id that it was assigned last, in each group."""
topics = st.sampled_from(["t", "u"])
producers = st.sampled_from([7, 8])
instances = st.sampled_from([None, "i", "j"])
pauses = st.sampled_from([0, 1, 3000, 10_000, 60_000, 600_000, 7 * 24 * 3_600_000])


class History(RuleBasedStateMachine):
    """Clients send requests, the log commits now or later, time passes, leadership moves."""

    @initialize()
    def begin(self) -> None:
        self.bench = Workbench(GroupConfig(initial_rebalance_delay_ms=3000, max_size=3))
        self.ids: dict[tuple[str, int], str] = {}
        self.generations: dict[tuple[str, int], int] = {}

    @rule(group=groups, slot=slots, topic=topics, instance=instances, version=st.integers(3, 9))
    def join(self, group: str, slot: int, topic: str, instance: str | None, version: int) -> None:
        key = (group, slot)
        answer = self.bench.join(
            self.ids.get(key, ""), group=group, topics=(topic,), instance=instance, version=version
        )
        answer.then(lambda response: self._answered(key, response))

    def _answered(self, key: tuple[str, int], response: JoinGroupResponse | None) -> None:
        assert response is not None
        if response.member_id:
            self.ids[key] = response.member_id
        else:
            self.ids.pop(key, None)
        self.generations[key] = response.generation_id

    @rule(group=groups, slot=slots, part=st.binary(max_size=2))
    def sync(self, group: str, slot: int, part: bytes) -> None:
        member_id = self.ids.get((group, slot), "")
        parts = dict.fromkeys(self.ids.values(), part)
        answer: Wait[SyncGroupResponse] = self.bench.sync(
            member_id, self.generations.get((group, slot), 0), parts, group=group
        )
        assert answer is not None

    @rule(group=groups, slot=slots)
    def beat(self, group: str, slot: int) -> None:
        if not self.bench.log.held:
            generation = self.generations.get((group, slot), 0)
            self.bench.heartbeat(self.ids.get((group, slot), ""), generation, group=group)

    @rule(group=groups, slot=slots)
    def leave(self, group: str, slot: int) -> None:
        self.bench.leave((self.ids.pop((group, slot), "x"), None), group=group)

    @rule(group=groups, slot=slots, topic=topics, offset=st.integers(0, 9))
    def commit(self, group: str, slot: int, topic: str, offset: int) -> None:
        member_id = self.ids.get((group, slot), "")
        generation = self.generations.get((group, slot), -1)
        self.bench.commit(
            offset, group=group, topic=topic, member_id=member_id, generation=generation
        )

    @rule(group=groups, topic=topics, retention_ms=st.sampled_from([-1, 1000]))
    def commit_simply(self, group: str, topic: str, retention_ms: int) -> None:
        self.bench.commit(group=group, topic=topic, retention_ms=retention_ms)

    @rule(group=groups, topic=topics, producer=producers, offset=st.integers(0, 9))
    def commit_in_transaction(self, group: str, topic: str, producer: int, offset: int) -> None:
        self.bench.commit_in_transaction(offset, producer=producer, group=group, topic=topic)

    @rule(producer=producers, committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self.bench.end_transaction(producer=producer, committed=committed)

    @rule(group=groups, topic=topics)
    def delete_offsets(self, group: str, topic: str) -> None:
        requests.delete_offsets(self.bench.shard, group, {topic: (0,)})

    @rule(group=groups)
    def delete(self, group: str) -> None:
        requests.delete_groups(self.bench.shard, [group])

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.bench.shard.on_topics_deleted(frozenset({topic}))

    @rule(by_ms=pauses)
    def wait(self, by_ms: int) -> None:
        self.bench.advance(by_ms)

    @rule()
    @precondition(lambda self: not self.bench.log.held)
    def hold(self) -> None:
        self.bench.log.held = True

    @rule()
    @precondition(lambda self: self.bench.log.held)
    def release(self) -> None:
        self.bench.log.held = False
        self.bench.log.commit()
        self.bench.scheduler.run_due()

    @rule()
    def fail_over(self) -> None:
        before = self.bench.shard.latest
        self.bench = self.bench.after_failover()
        shard = self.bench.shard
        assert shard.latest == shard.committed == before
        for group_id, stored in before.groups.items():
            group = shard.find(group_id)
            assert group is not None
            assert group.to_stored(group.assignments) == stored

    @invariant()
    def the_log_replays_to_the_same_state(self) -> None:
        log = self.bench.log
        assert self.bench.shard.latest == replayed(log, len(log.records))
        assert self.bench.shard.committed == replayed(log, log.high_watermark)

    @invariant()
    def a_stable_group_is_what_its_record_says(self) -> None:
        for group_id, group in self.bench.shard.groups.items():
            if group.state is ClassicGroupState.STABLE and not self.bench.log.held:
                stored = self.bench.shard.latest.groups[group_id]
                now = group.to_stored(group.assignments)
                assert (now.generation, now.protocol) == (stored.generation, stored.protocol)
                assert now.leader == stored.leader
                assert {one.member_id: one.assignment for one in now.members} == {
                    one.member_id: one.assignment for one in stored.members
                }

    @invariant()
    def every_group_is_in_the_log(self) -> None:
        assert self.bench.shard.groups.keys() <= self.bench.shard.latest.groups.keys()

    @invariant()
    def every_member_has_a_timer_or_waits(self) -> None:
        for group in self.bench.shard.groups.values():
            for member in group.members.values():
                timed = member.session is not None and member.session.deadline_ms is not None
                assert timed or member.awaits_response


def replayed(log: FakeLog, end: int) -> ReplayedState:
    state = ReplayedState()
    for offset, (header, records, marker) in enumerate(list(log.read_all())[:end]):
        if marker is not None:
            state.end_transaction(EndTransaction(header.producer_id, marker.committed))
        for record in records:
            assert record.key is not None
            change = decode(record.key, record.value)
            assert change is not None
            state.replay_logged(LoggedRecord(change, offset, header.producer_id))
    return state


History.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestHistory = History.TestCase
