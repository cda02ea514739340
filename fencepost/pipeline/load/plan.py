"""Where a load begins in each partition, and whether the topic is one to load into.

A load begins at offset 0 of a topic that has nothing else, or behind what was there when it was
first begun. The latter is not to be known from the log later on: so it is written down, before
anything is appended.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from fencepost.client.client import Client
from fencepost.client.cluster import TopicConfigs, TopicMetadata, topic_configs
from fencepost.client.errors import RETRIABLE
from fencepost.client.model import Partition
from fencepost.client.retry import A, RetryFailed, retry
from fencepost.pipeline.load.options import Columns, LoadInterrupted, LoadRefused, Target
from fencepost.pipeline.load.partition_load import PartitionLog
from fencepost.protocol.errors import ErrorCode

REQUIRED_CONFIGS: Final = {
    "check.expected.offsets": "true",
    "check.expected.offsets.source": "batch",
    "check.expected.offsets.scope": "partition",
}
"""What the topic must be like; the last two are so by default."""
PLAN_FILE: Final = "load.json"
_VERSION: Final = 1
_UNKNOWN_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_ATTEMPT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the tasks of all attempts must agree about."""

    topic_id: UUID | None
    bases: tuple[int, ...]
    """Of each partition, the offset of its first row."""


async def make_plan(
    target: Target, columns: Columns, files: Sequence[str], checkpoint: Path | None
) -> Plan:
    """The plan of this load, which is that of its first attempt.

    :param files: The names of the source's files, in their order.
    :param checkpoint: The folder where the plan is kept. None: it begins at 0 everywhere.
    :raises LoadRefused: When the topic is none to load into, or the plan is another load's.
    :raises LoadInterrupted: When brokers do not answer in time.
    :raises OSError: When the folder cannot be read or written.
    """
    async with Client(target.bootstrap, client_id="fencepost-load") as client:
        topic_id, count = await _describe_topic(client, target)
        if checkpoint is None:
            return Plan(topic_id=topic_id, bases=(0,) * count)
        identity = {"topic": target.topic, "columns": asdict(columns), "files": list(files)}
        path = checkpoint / PLAN_FILE
        if not path.exists():
            partitions = (
                Partition(topic=target.topic, index=each, topic_id=topic_id)
                for each in range(count)
            )
            logs = [PartitionLog(client, each, patience_s=target.patience_s) for each in partitions]
            bases = tuple([(await log.bounds())[1] for log in logs])
            _write_plan(path, Plan(topic_id=topic_id, bases=bases), identity)
    return _read_plan(path, topic_id, count, identity)


# -- what the topic is like ---------------------------------------------------------------------


async def _describe_topic(client: Client, target: Target) -> tuple[UUID | None, int]:
    """The topic's id, and how many partitions it has."""

    async def look() -> TopicMetadata:
        return (await client.refresh(target.topic, timeout_s=_ATTEMPT_S)).topics[target.topic]

    async def look_at_configs() -> TopicConfigs:
        anybody = await client.any_broker(timeout_s=_ATTEMPT_S)
        return await topic_configs(
            anybody, target.topic, tuple(REQUIRED_CONFIGS), timeout_s=_ATTEMPT_S
        )

    found = await _ask_until_answered(client, look, target)
    if (await _ask_until_answered(client, look_at_configs, target)).values != REQUIRED_CONFIGS:
        needed = ", ".join(f"{name}={value}" for name, value in REQUIRED_CONFIGS.items())
        raise LoadRefused(f"topic {target.topic} must have {needed}")
    return found.topic_id, len(found.partitions)


async def _ask_until_answered(client: Client, ask: Callable[[], Awaitable[A]], target: Target) -> A:
    try:
        return await retry(
            client, ask, deadline_s=target.patience_s, retriable=RETRIABLE - {_UNKNOWN_TOPIC}
        )
    except RetryFailed as error:
        if error.error == _UNKNOWN_TOPIC:
            raise LoadRefused(f"there is no topic {target.topic}") from error
        if error.error is not None:
            raise LoadRefused(f"topic {target.topic}: {error}") from error
        raise LoadInterrupted(str(error)) from error


# -- what is written down -----------------------------------------------------------------------


def _write_plan(path: Path, plan: Plan, identity: Mapping[str, Any]) -> None:
    """Write the plan beside its place and then to it: it is there wholly, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    topic_id = None if plan.topic_id is None else str(plan.topic_id)
    content = {"version": _VERSION, **identity, "topic_id": topic_id, "bases": plan.bases}
    aside = path.with_suffix(".new")
    with aside.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_plan(path: Path, topic_id: UUID | None, count: int, identity: Mapping[str, Any]) -> Plan:
    """The plan that is written down, if it is this load's."""
    try:
        content = json.loads(path.read_text())
        version, bases = content["version"], tuple(map(int, content["bases"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LoadRefused(f"{path} is no plan of a load: {error}") from error
    if version != _VERSION:
        raise LoadRefused(f"{path} is of version {version}; {_VERSION} is known here")
    for name, value in identity.items():
        if content.get(name) != value:
            raise LoadRefused(f"{path} is the plan of a load with other {name}")
    if content.get("topic_id") != (None if topic_id is None else str(topic_id)):
        raise LoadRefused(f"{path} is of another topic of the name {identity['topic']}")
    if len(bases) != count:
        raise LoadRefused(f"{path} is of {len(bases)} partitions; there are {count} now")
    return Plan(topic_id=topic_id, bases=bases)
