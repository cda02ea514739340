"""Client actions carried out: each client of a scenario is a `Client` of its own."""

import time
from collections.abc import Awaitable, Callable, KeysView, Mapping
from typing import Any, Final

from fencepost.client.batches import FetchedRecord
from fencepost.client.cluster import find_coordinator, metadata
from fencepost.client.errors import Failure, KafkaClientError
from fencepost.client.groups import ConsumerGroupMetadata, commit_offset, fetch_committed_offset
from fencepost.client.model import Fetched, Isolation, OffsetSpec
from fencepost.client.partitions import fetch, list_offsets, offset_for_leader_epoch
from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.actions import Action, answers, bodies
from fencepost.scenario.actions.answers import ActionAnswer
from fencepost.scenario.actions.context import ActionContext, NoCoordinator, ScenarioClients
from fencepost.scenario.actions.group_membership import GroupMembers
from fencepost.scenario.actions.produce import Producers
from fencepost.scenario.actions.replicated import replicated
from fencepost.scenario.message_data import error_codes, named_api, to_plain_data, to_request


class ActionExecutor:
    """The clients of a scenario.

    :param session: Their connections.
    """

    def __init__(self, session: ScenarioClients) -> None:
        self._clients = session
        self._membership = GroupMembers(session)
        # Each takes the body that its row in the table of actions names.
        self._handlers: Final[
            Mapping[str, Callable[[ActionContext, Any], Awaitable[ActionAnswer]]]
        ] = {
            "produce": Producers(session).produce,
            "fetch": self._fetch,
            "list_offsets": self._list_offsets,
            "offsets_for_leader_epoch": self._epoch_end,
            "metadata": self._metadata,
            "commit": self._commit,
            "committed": self._committed,
            "find_coordinator": self._find_coordinator,
            "join": self._membership.join,
            "member": self._membership.describe,
            "heartbeat": self._membership.heartbeat,
            "leave": self._membership.leave,
            "replicated": self._replicated,
            "call": self._call,
        }

    def names(self) -> KeysView[str]:
        """Of all that can be carried out."""
        return self._handlers.keys()

    async def execute(self, action: Action, body: bodies.ActionBody) -> ActionAnswer:
        """Carry out an action; that no answer comes is an answer as well.

        :raises CannotAct: When it cannot be done as it stands.
        """
        asked = self._clients.new_context(body)
        began = time.perf_counter()
        try:
            answer = await self._handlers[action.name](asked, body)
        except KafkaClientError as error:
            answer = _failed_answer(asked, body, failed=error.failure)
        except TimeoutError:
            answer = _failed_answer(asked, body, failed=Failure.TIMED_OUT)
        except NoCoordinator as error:
            answer = _failed_answer(asked, body, error=str(error))
        elapsed_ms = round((time.perf_counter() - began) * 1000)
        return answer.model_copy(update={"elapsed_ms": elapsed_ms})

    async def close(self) -> None:
        """Close all clients."""
        await self._membership.close()
        await self._clients.close()

    # -- partitions -----------------------------------------------------------------------------

    async def _fetch(self, asked: ActionContext, body: bodies.FetchBody) -> answers.FetchAnswer:
        connection, partition = await self._clients.partition_connection(asked, body)
        fetched = await fetch(
            connection,
            partition,
            body.offset,
            epoch=body.epoch,
            last_epoch=body.last_epoch,
            isolation=Isolation[body.isolation.upper()],
            wait_ms=body.wait_ms,
            min_bytes=body.min_bytes,
            max_bytes=body.max_bytes,
            rack=body.rack,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return _fetch_answer(asked, fetched, body.offset)

    async def _list_offsets(
        self, asked: ActionContext, body: bodies.ListOffsetsBody
    ) -> answers.ListOffsetsAnswer:
        connection, partition = await self._clients.partition_connection(asked, body)
        found = await list_offsets(
            connection,
            partition,
            body.at if isinstance(body.at, int) else OffsetSpec[body.at.upper()],
            epoch=body.epoch,
            isolation=Isolation[body.isolation.upper()],
            replica=body.replica,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return answers.ListOffsetsAnswer(
            **asked.answer_fields(found.error, found),
            offset=found.offset,
            timestamp=found.timestamp,
            epoch=found.epoch,
        )

    async def _replicated(
        self, asked: ActionContext, body: bodies.ReplicatedBody
    ) -> answers.ReplicatedAnswer:
        return await replicated(self._clients.control.verbs, asked, body)

    async def _epoch_end(
        self, asked: ActionContext, body: bodies.EpochEndBody
    ) -> answers.EpochEndAnswer:
        connection, partition = await self._clients.partition_connection(asked, body)
        found = await offset_for_leader_epoch(
            connection,
            partition,
            body.of,
            epoch=body.epoch,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return answers.EpochEndAnswer(
            **asked.answer_fields(found.error, found),
            epoch=found.epoch,
            end_offset=found.end_offset,
        )

    async def _metadata(
        self, asked: ActionContext, body: bodies.MetadataBody
    ) -> answers.MetadataAnswer:
        connection = await self._clients.any_broker_connection(asked, body)
        seen = await metadata(
            connection, [body.topic], version=body.version, timeout_s=asked.timeout_s
        )
        topic, found = seen.topics.get(body.topic), seen.partition(body.topic, body.partition)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = unknown if topic is None else topic.error or (found.error if found else unknown)
        return answers.MetadataAnswer(
            **asked.answer_fields(error, seen),
            leader=-1 if found is None else found.leader,
            leader_epoch=-1 if found is None else found.leader_epoch,
            replicas=() if found is None else found.replicas,
            isr=() if found is None else found.isr,
            offline=() if found is None else found.offline,
            topic_id=None if topic is None or topic.topic_id is None else str(topic.topic_id),
            brokers=tuple(sorted(seen.brokers)),
            controller=seen.controller,
        )

    # -- groups ---------------------------------------------------------------------------------

    async def _commit(self, asked: ActionContext, body: bodies.CommitBody) -> answers.CommitAnswer:
        who = ConsumerGroupMetadata(group=body.group)
        if body.member is not None:
            who = self._membership.identity(body.member)
        led = await self._clients.control.partition_leader(body.topic, body.partition)
        connection = await self._clients.coordinator_connection(asked, body, body.group)
        answer = await commit_offset(
            connection,
            who,
            led.partition,
            body.offset,
            epoch=body.epoch,
            note=body.metadata,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return answers.CommitAnswer(**asked.answer_fields(answer.error, answer))

    async def _committed(
        self, asked: ActionContext, body: bodies.CommittedBody
    ) -> answers.CommittedAnswer:
        led = await self._clients.control.partition_leader(body.topic, body.partition)
        connection = await self._clients.coordinator_connection(asked, body, body.group)
        found = await fetch_committed_offset(
            connection,
            body.group,
            led.partition,
            stable=body.stable,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return answers.CommittedAnswer(
            **asked.answer_fields(found.error, found),
            offset=found.offset,
            epoch=found.epoch,
            metadata=found.metadata,
        )

    async def _find_coordinator(
        self, asked: ActionContext, body: bodies.FindCoordinatorBody
    ) -> answers.CoordinatorAnswer:
        connection = await self._clients.any_broker_connection(asked, body)
        found = await find_coordinator(
            connection, body.group, version=body.version, timeout_s=asked.timeout_s
        )
        return answers.CoordinatorAnswer(
            **asked.answer_fields(found.error, found),
            coordinator=found.broker,
            message=found.message,
        )

    # -- anything -------------------------------------------------------------------------------

    async def _call(self, asked: ActionContext, body: bodies.CallBody) -> answers.CallAnswer:
        api = named_api(body.api)
        connection = await self._clients.any_broker_connection(asked, body)
        version = body.version
        if version is None:
            version = await connection.best_version(api, timeout_s=asked.timeout_s)
        request = to_request(api, version, body.request)
        answer = await connection.ask_any(api, version, request, timeout_s=asked.timeout_s)
        response = to_plain_data(api, version, answer)
        throttle_time_ms = response.get("throttle_time_ms", 0)
        assert isinstance(throttle_time_ms, int)
        error = next((code for code in error_codes(response) if code != ErrorCode.NONE), 0)
        return answers.CallAnswer(
            **asked.common_fields(error=error, version=version, throttle_time_ms=throttle_time_ms),
            response={**response},
        )


def _failed_answer(
    asked: ActionContext,
    body: bodies.ActionBody,
    *,
    failed: str | None = None,
    error: str | None = None,
) -> ActionAnswer:
    return ActionAnswer(
        error=error,
        failed=failed,
        broker=asked.broker,
        version=body.version,
        throttle_time_ms=0,
        elapsed_ms=0,
    )


def _fetch_answer(asked: ActionContext, fetched: Fetched, offset: int) -> answers.FetchAnswer:
    content, diverging, leader = fetched.content, fetched.diverging, fetched.leader
    records = tuple(map(_record_answer, content.records))
    return answers.FetchAnswer(
        **asked.answer_fields(fetched.error, fetched),
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        diverging=None
        if diverging is None
        else answers.DivergingAnswer(epoch=diverging[0], end_offset=diverging[1]),
        leader=None if leader is None else answers.LeaderAnswer(id=leader[0], epoch=leader[1]),
        preferred_read_replica=fetched.preferred_read_replica,
        values=tuple(each.value for each in records),
        records=records,
        next_offset=offset if content.next_offset is None else content.next_offset,
        corrupt=content.corrupt is not None,
        corruption=content.corrupt,
    )


def _record_answer(record: FetchedRecord) -> answers.RecordAnswer:
    return answers.RecordAnswer(
        offset=record.offset,
        epoch=record.epoch,
        timestamp=record.timestamp,
        key=_text(record.key),
        value=_text(record.value),
        headers={name: _text(value) for name, value in record.headers},
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
