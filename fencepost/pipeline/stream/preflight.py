"""What cannot work, found before Spark is: a minute of retries would tell less."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fencepost.client import Client, KafkaClientError
from fencepost.client.errors import RETRIABLE
from fencepost.pipeline.requirements import CannotRunError
from fencepost.protocol.errors import ErrorCode, error_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fencepost.client.cluster import ClusterMetadata
    from fencepost.pipeline.stream.options import SourceOptions, TriggerOptions

TIMEOUT_S: Final = 10.0
_SECURITY: Final = "kafka.security.protocol"
_PLAIN: Final = "PLAINTEXT"


def check_topics(source: SourceOptions, target: str | None = None) -> None:
    """Look for the brokers and the topics.

    Brokers that take encrypted connections alone are not asked.

    :param target: The topic that is written to.
    :raises CannotRunError: When no broker answers, or a topic is missing or not to be had.
    """
    if source.options.get(_SECURITY, _PLAIN) != _PLAIN:
        return
    topics = [*source.topics, *([target] if target is not None else [])]
    try:
        seen = asyncio.run(_metadata(source.bootstrap, topics))
    except ValueError as error:
        raise CannotRunError(f"--bootstrap: {error}") from None
    except KafkaClientError as error:
        raise CannotRunError(f"no broker answers at {source.bootstrap}: {error}") from None
    for topic in topics:
        found = seen.topics.get(topic)
        if found is None or found.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CannotRunError(f"there is no topic {topic} at {source.bootstrap}")
        if found.error and found.error not in RETRIABLE:
            raise CannotRunError(f"topic {topic}: {error_name(found.error)}")
    if target in source.topics:
        raise CannotRunError(f"{target} is read, and cannot be written to as well")


async def _metadata(bootstrap: str, topics: Sequence[str]) -> ClusterMetadata:
    async with Client(bootstrap, client_id="fencepost-stream") as client:
        return await client.refresh(*topics, timeout_s=TIMEOUT_S)


def check_output_directory(pace: TriggerOptions, directory: str) -> None:
    """Look whether a directory belongs to a checkpoint, where both are folders of this machine.

    Spark numbers batches by the checkpoint. What the directory has of a greater number it takes for
    done, and leaves out without a word.

    :raises CannotRunError: When the directory has batches that the checkpoint does not know.
    """
    written, known = _local_path(directory), _local_path(pace.checkpoint)
    if written is None or known is None:
        return
    done = _newest_batch(written / "_spark_metadata")
    if done > _newest_batch(known / "offsets"):
        raise CannotRunError(
            f"{directory} has batches up to {done} that the checkpoint {pace.checkpoint} does not"
            " know: give the checkpoint that they were written with, or another directory"
        )


def _local_path(place: str) -> Path | None:
    """A path or a ``file:`` URL as a path; None for what is elsewhere."""
    url = urlsplit(place)
    if not url.scheme:
        return Path(place)
    return Path(url2pathname(url.path)) if url.scheme == "file" else None


def _newest_batch(folder: Path) -> int:
    """The greatest number of a batch that has a file in a folder of Spark's; -1 where none has."""
    names = (each.name.removesuffix(".compact") for each in folder.glob("[0-9]*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)
