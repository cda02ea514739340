"""Thousands of random requests to both clusters, world by world, and what differed."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from fencepost.broker.handlers import CONTROLLER_APIS, READING_APIS
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from fencepost.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.describe_groups import DescribeGroupsRequest
from fencepost.protocol.messages.describe_log_dirs import (
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from fencepost.protocol.messages.list_groups import ListGroupsResponse
from fencepost.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.wait import wait_until
from tests.harness.wire import Value
from tests.oracle.random_requests.config_values import BROKER_CONFIGS, METRICS_CONFIGS, ROOT_LOGGER
from tests.oracle.random_requests.messages import RandomRequest
from tests.oracle.random_requests.pools import LONG_TRANSACTION_MS, World
from tests.oracle.random_requests.reasons import reason_of
from tests.oracle.random_requests.sides import Both, Side
from tests.oracle.random_requests.twins import Difference, Twins

WORLD_SIZE: Final = 100
"""Requests of a world."""
_AGAIN: Final = 10
_PAUSE_S: Final = 0.05
_TOPIC, _BROKER, _LOGGER, _METRICS = 2, 4, 8, 16
_SET, _DELETE = 0, 1
MARKER: Final = "marker"
_WEEK_MS: Final = 604_800_000
_TIMEOUT_MS: Final = 20_000
_SAID: Final = ("message", "configs")
"""Ends of paths to what describes the state and is no part of it."""
_ENDING: Final = frozenset({"end_txn", "init_producer_id"})
"""What ends transactions: the answer comes before the markers."""
_AT_ONCE_MS: Final = 1
"""The longest rebalance timeout that is over before the next request, or only just not."""
_READ_ONLY: Final = READING_APIS - {"fetch"}
"""What may be asked again: a real broker learns late of what its controller did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that was answered otherwise, for no reason that has a name."""

    seed: int
    request: RandomRequest
    kafka: Value
    fencepost: Value
    differences: list[Difference]

    def __str__(self) -> str:
        request = self.request
        lines = [
            f"seed {self.seed}, request {request.index}: {request.api.title} v{request.version}",
            f"   alone: python -m tests.oracle.random_requests {self.seed} {request.index}",
            f"   {request.message}",
            *(
                f"   {path}:\n      kafka     {k}\n      fencepost {f}"
                for path, k, f in self.differences
            ),
            f"   kafka     {self.kafka}",
            f"   fencepost {self.fencepost}",
        ]
        return "\n".join(lines)


@dataclass(slots=True)
class Result:
    """What a run found."""

    requests: Counter[str] = field(default_factory=Counter)
    """How many of each API."""
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


class Comparison:
    """One run with one seed."""

    def __init__(self, both: Both, seed: int, now_ms: int | None = None) -> None:
        self.result = Result()
        self._both = both
        self._seed = seed
        self._now_ms = int(time.time()) * 1000 if now_ms is None else now_ms
        self._run = f"{random.SystemRandom().randrange(10**6):06d}"
        self._marks = 0
        self._world = ""
        self._twins = Twins()

    def run(self, count: int, start: int = 0) -> None:
        """Send so many requests, whole worlds but for the last."""
        self._prepare()
        self._plain(BY_NAME["metadata"], 12, MetadataRequest(topics=()))  # which cluster this is
        for first in range(start, start + count, WORLD_SIZE):
            self._live(first, min(WORLD_SIZE, start + count - first))
        self._both.close()

    def replay(self, index: int) -> None:
        """Send the requests of one index's world up to it."""
        first = index - index % WORLD_SIZE
        self.run(index - first + 1, first)

    # -- worlds ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Have both create what the first request for it would."""
        for side in (self._both.kafka, self._both.fencepost):
            _wait_for_coordinator(side)
            _wait_for_producer_id(side)
            _reset_configs(side)
            _delete_topics(side, "")
            marker = CreatableTopic(name=MARKER, num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=(marker,), timeout_ms=_TIMEOUT_MS)
            side.ask(BY_NAME["create_topics"], 7, request)

    def _live(self, first: int, count: int) -> None:
        """One world from its beginning; it ends early where its state is no longer the same."""
        world = World(name=f"w{self._run}-{first}", now_ms=self._now_ms)
        self._world = world.name
        self._create(world)
        generator = world.generator()
        for index in range(first, first + count):
            rng = random.Random(f"{self._seed}/{index}")
            request = generator.request(rng, index)
            if not self._compare(request):
                break
        self._delete(world)

    def _create(self, world: World) -> None:
        topics = tuple(
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=tuple(
                    CreatableTopicConfig(name=key, value=value) for key, value in configs.items()
                ),
            )
            for name, (partitions, configs) in world.topics.items()
        )
        request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
        self._plain(BY_NAME["create_topics"], 7, request)
        for name in world.transactional_ids:
            init = InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=LONG_TRANSACTION_MS
            )
            self._plain(BY_NAME["init_producer_id"], 5, init)

    def _delete(self, world: World) -> None:
        """Delete all topics of a world; a controller that has just resigned is asked again."""
        for side in (self._both.kafka, self._both.fencepost):
            _delete_topics(side, world.name)
        self._settle()

    # -- requests -------------------------------------------------------------------------------

    def _plain(self, api: Api, version: int, message: Value) -> bool:
        request = RandomRequest(
            index=-1, api=api, version=version, written=version, message=message
        )
        return self._compare(request)

    def _compare(self, request: RandomRequest) -> bool:
        """Whether the state of both is still the same, as far as the answers tell."""
        name = request.api.name
        self.result.requests[name] += 1
        kafka, fencepost, different = self._ask(request)
        for _ in range(_AGAIN if name in _READ_ONLY else 0):
            if not different:
                break
            time.sleep(_PAUSE_S)
            kafka, fencepost, different = self._ask(request)
        if name in CONTROLLER_APIS:
            self._settle()
        if name in _ENDING:
            self._settle_transactions()
        if isinstance(kafka, JoinGroupResponse) and not kafka.error_code:
            self._settle_group(request)
        if isinstance(kafka, InitProducerIdResponse) and not (different or kafka.error_code):
            self._name_producer(request, kafka, fencepost)
        if not different:
            return True
        self.result.failures.append(
            Failure(
                seed=self._seed,
                request=request,
                kafka=kafka,
                fencepost=fencepost,
                differences=different,
            )
        )
        return name in _READ_ONLY or all(each.path.endswith(_SAID) for each in different)

    def _name_producer(self, request: RandomRequest, kafka: Value, fencepost: Value) -> None:
        """Remember the producer of a transactional id."""
        name = request.message.transactional_id
        if name is not None:
            self._twins.name("producer", name, kafka.producer_id, fencepost.producer_id)

    def _ask(self, request: RandomRequest) -> tuple[Value, Value, list[Difference]]:
        """The answers, and what differs between them for no named reason."""
        kafka, fencepost = map(self._own, self._both.ask(request, self._twins))
        found = []
        for each in self._twins.differences(kafka, fencepost):
            reason = reason_of(request.api.name, each)
            if reason is None:
                found.append(each)
            else:
                self.result.reasons[reason.why] += 1
        return kafka, fencepost, found

    def _own(self, answer: Value) -> Value:
        """An answer without the groups, logs and configs of other worlds: in whatever state."""
        if isinstance(answer, ListGroupsResponse):
            groups = (each for each in answer.groups if each.group_id.startswith(self._world))
            return replace(answer, groups=tuple(groups))
        if isinstance(answer, ListConfigResourcesResponse):
            found = answer.config_resources
            own = (each for each in found if each.resource_name.startswith(self._world))
            return replace(answer, config_resources=tuple(own))
        if isinstance(answer, ListTransactionsResponse):
            states = answer.transaction_states
            mine = (each for each in states if each.transactional_id.startswith(self._world))
            return replace(answer, transaction_states=tuple(mine))
        if isinstance(answer, DescribeLogDirsResponse):
            return replace(answer, results=tuple(map(self._own_logs, answer.results)))
        return answer

    def _own_logs(self, result: DescribeLogDirsResult) -> DescribeLogDirsResult:
        topics = (each for each in result.topics if each.name.startswith(self._world))
        return replace(result, topics=tuple(topics))

    def _settle(self) -> None:
        """Wait until Kafka's broker knows what its controller wrote.

        It takes over what the controller wrote in the order of that. Once the second of two marks
        shows, everything behind the first has been taken over.
        """
        for _ in range(2):
            self._marks += 1
            self._mark(self._both.kafka, str(_WEEK_MS + self._marks))

    def _settle_transactions(self) -> None:
        """Wait until both have written the markers of transactions that end."""
        for side in (self._both.kafka, self._both.fencepost):
            wait_until("no transaction ends", lambda side=side: not _ends(side, self._world))  # type: ignore[misc]  # mypy infers no type for its default

    def _settle_group(self, request: RandomRequest) -> None:
        """Wait until both have removed the members that have no time to bring an assignment.

        Others of the group may have it; what they bring is what comes next.
        """
        if not request.version or request.message.rebalance_timeout_ms > _AT_ONCE_MS:
            return  # version 0 has the session's, which is long
        sides = (self._both.kafka, self._both.fencepost)
        for _ in range(_AGAIN):
            if not any(_awaits_assignment(side, request.message.group_id) for side in sides):
                return
            time.sleep(_PAUSE_S)

    def _mark(self, side: Side, value: str) -> None:
        config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
        resource = AlterConfigsResource(
            resource_type=_TOPIC, resource_name=MARKER, configs=(config,)
        )
        alter = IncrementalAlterConfigsRequest(resources=(resource,))
        side.ask(BY_NAME["incremental_alter_configs"], 1, alter)
        wanted = DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=MARKER, configuration_keys=("retention.ms",)
        )
        describe = DescribeConfigsRequest(resources=(wanted,))

        def shown() -> bool:
            results = side.ask(BY_NAME["describe_configs"], 4, describe).results
            return bool(results[0].configs and results[0].configs[0].value == value)

        wait_until("the mark shows", shown)


def _ends(side: Side, world: str) -> bool:
    """Whether a transaction of a world is between its decision and its markers."""
    request = ListTransactionsRequest(state_filters=("PrepareCommit", "PrepareAbort"))
    found = side.ask(BY_NAME["list_transactions"], 0, request).transaction_states
    return any(each.transactional_id.startswith(world) for each in found)


def _awaits_assignment(side: Side, group_id: str) -> bool:
    """Whether a group has a generation whose members have no assignment."""
    request = DescribeGroupsRequest(groups=(group_id,))
    found = side.ask(BY_NAME["describe_groups"], 5, request).groups[0]
    return bool(found.group_state == "CompletingRebalance")


def _delete_topics(side: Side, world: str) -> None:
    wait_until("the world is gone", lambda: _is_deleted(side, world))


def _is_deleted(side: Side, world: str) -> bool:
    """Whether no topic of a world is there; those that are will be deleted."""
    topics = side.ask(BY_NAME["metadata"], 12, MetadataRequest(topics=None)).topics
    names = [each.name for each in topics if not each.is_internal and each.name != MARKER]
    own = tuple(DeleteTopicState(name=each) for each in names if each.startswith(world))
    if own:
        request = DeleteTopicsRequest(topics=own, timeout_ms=_TIMEOUT_MS)
        side.ask(BY_NAME["delete_topics"], 6, request)
    return not own


def _reset_configs(side: Side) -> None:
    """Take back what an earlier run may have set for the broker, and what metrics it wanted."""
    unset: list[tuple[str, int, str | None]] = [(name, _DELETE, None) for name in BROKER_CONFIGS]
    changes = [(_BROKER, name, config) for name in ("", "1") for config in unset]
    changes.append((_LOGGER, "1", (ROOT_LOGGER, _SET, "WARN")))
    list_metrics = ListConfigResourcesRequest(resource_types=(_METRICS,))
    found = side.ask(BY_NAME["list_config_resources"], 1, list_metrics).config_resources
    changes += [
        (_METRICS, resource.resource_name, (name, _DELETE, None))
        for resource in found
        for name in METRICS_CONFIGS
    ]
    for kind, resource_name, (name, operation, value) in changes:
        config = AlterableConfig(name=name, config_operation=operation, value=value)
        altered = AlterConfigsResource(
            resource_type=kind, resource_name=resource_name, configs=(config,)
        )
        request = IncrementalAlterConfigsRequest(resources=(altered,))
        side.ask(BY_NAME["incremental_alter_configs"], 1, request)


def _wait_for_coordinator(side: Side) -> None:
    """Of groups and of transactions."""
    api = BY_NAME["find_coordinator"]
    for kind in range(2):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("g",))
        wait_until(
            "a coordinator",
            lambda request=request: not side.ask(api, 6, request).coordinators[0].error_code,  # type: ignore[misc]  # mypy infers no type for its default
        )


def _wait_for_producer_id(side: Side) -> None:
    api, request = BY_NAME["init_producer_id"], InitProducerIdRequest(transactional_id=None)
    wait_until("a producer id", lambda: not side.ask(api, 4, request).error_code)
