"""What the tier has of a partition: its keys are listed, and the metadata read that are new.

Metadata that tell of a finished copy never change but to tell of its deletion, and go with it; so
as long as one leads, what it knows of such a copy is not read again. A new leader reads all:
another may have begun a deletion that it did not live to finish.

A finished copy whose records are not there is lost: the tier may have lost them while the copy was
made, and then got the metadata that tell of its end.
"""

import re
from collections.abc import Callable, Collection
from typing import Final
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, get_each, list_keys
from fencepost.protocol.byte_utils import parse_uuid
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import ObjectKind, ObjectStore, partition_prefix
from fencepost.storage.tier.segment_metadata import (
    CorruptMetadata,
    RemoteSegment,
    TopicIdPartition,
)

_NAME: Final = re.compile(r"[0-9]{20}-([A-Za-z0-9_-]{22})(\.[a-z-]+)", re.ASCII)


def list_metadata(
    store: ObjectStore,
    partition: TopicIdPartition,
    segments: RemoteSegments,
    *,
    reread: bool = False,
    corrupt: Callable[[str, CorruptMetadata], None] | None = None,
) -> AsyncSteps[frozenset[str]]:
    """Update the metadata of a partition's segments from the tier.

    :param segments: The metadata so far; updated.
    :param reread: Whether metadata of finished copies are read again.
    :param corrupt: Told of metadata that can't be read, by key: their segments count for nothing.
    :returns: The keys of objects that have no metadata beside them. Where they have none the next
        time either, none will ever be written.
    :raises TierError: When the tier does not tell; what was known stays.
    """
    keys = yield from list_keys(store, partition_prefix(partition))
    metadata, others = _split_keys(keys)
    wanted = [
        key for segment_id, key in metadata.items() if reread or not _is_final(segments, segment_id)
    ]
    found = yield from get_each(store, wanted)
    with_records = {segment_id for segment_id, key in others if key.endswith(ObjectKind.LOG)}
    for known in list(segments):
        if known.id not in metadata or _is_lost(known, with_records):
            segments.drop(known.id)
    for key, data in zip(wanted, found, strict=True):
        if data is None:
            continue
        try:
            segment = RemoteSegment.from_json(data)
        except CorruptMetadata as error:
            if corrupt is not None:
                corrupt(key, error)
            continue
        # One that was finished since the keys were listed is not lost, but known the next time.
        if not _is_lost(segment, with_records):
            segments.put(segment)
    return frozenset(key for segment_id, key in others if segment_id not in metadata)


def _split_keys(keys: list[str]) -> tuple[dict[UUID, str], list[tuple[UUID, str]]]:
    """The keys of metadata by the segment's id, and all others; what has no such name is left."""
    metadata: dict[UUID, str] = {}
    others: list[tuple[UUID, str]] = []
    for key in keys:
        name = _NAME.fullmatch(key.rpartition("/")[2])
        if name is None:
            continue
        segment_id = parse_uuid(name[1])
        if name[2] == ObjectKind.METADATA:
            metadata[segment_id] = key
        else:
            others.append((segment_id, key))
    return metadata, others


def _is_final(segments: RemoteSegments, segment_id: UUID) -> bool:
    segment = segments.get(segment_id)
    return segment is not None and segment.is_served


def _is_lost(segment: RemoteSegment, with_records: Collection[UUID]) -> bool:
    return segment.is_served and segment.id not in with_records
