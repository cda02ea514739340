"""What the remote tier of ``serve --remote`` holds, read through obstore; nothing is written.

Settings of S3 come from the environment of the process that reads, executors too, or from the
URL's query, as with ``serve``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from fencepost.broker.server.remote_urls import (
    RemoteUnavailable,
    first_line,
    is_in_memory,
    open_remote,
    remote_problem,
    require_obstore,
)
from fencepost.pipeline.datasource.log_directories import UnreadableSource
from fencepost.pipeline.datasource.segment_stamps import FileMark, SegmentStamp
from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import ObjectKind
from fencepost.storage.tier.segment_metadata import CorruptMetadata, RemoteSegment

if TYPE_CHECKING:
    from obstore.store import ObjectStoreMethods

_READERS: Final = 8
_ID_LENGTH: Final = 22


class Tier:
    """A tier, opened to be read.

    :ivar url: Where it is. May hold a secret.
    :ivar unreadable: Keys of the metadata that the last reading could not make sense of, and why.
    """

    def __init__(self, url: str, store: ObjectStoreMethods) -> None:
        self.url = url
        self.unreadable: tuple[tuple[str, str], ...] = ()
        self._store = store

    @classmethod
    def open(cls, url: str) -> Tier:
        """The tier that a URL names, as ``serve --remote`` takes it.

        :raises UnreadableSource: When there is none, or it does not answer.
        """
        problem = remote_problem(url)
        if problem is not None:
            raise UnreadableSource(f"the URL of the tier {problem}")
        if is_in_memory(url):
            raise UnreadableSource(
                "a tier in memory is gone with its cluster: no other process can read it"
            )
        parts = urlsplit(url)
        try:
            require_obstore()
            # `serve` makes a folder that is missing; a reader must not.
            if parts.scheme == "file":
                return cls(url, _folder(Path(unquote(parts.path))))
            return cls(url, open_remote(url, os.environ))
        except RemoteUnavailable as error:
            raise UnreadableSource(str(error)) from error

    def segments(self, topics: Collection[str] | None = None) -> tuple[RemoteSegment, ...]:
        """All segments of which there are metadata, by topic, partition and start offset.

        :param topics: Only of these; None for all.
        :raises UnreadableSource: When the tier can't be listed or read.
        """
        return self.read_segments(self.metadata_keys(topics))

    def metadata_keys(self, topics: Collection[str] | None = None) -> tuple[str, ...]:
        """The keys of all metadata of segments.

        :param topics: Only of these; None for all.
        :raises UnreadableSource: When the tier can't be listed.
        """
        return tuple(self.stamps(topics))

    def stamps(self, topics: Collection[str] | None = None) -> dict[str, SegmentStamp]:
        """Of each segment the stamp of its objects, by the key of its metadata.

        :param topics: Only of these; None for all.
        :raises UnreadableSource: When the tier can't be listed.
        """
        from obstore.exceptions import BaseError

        marks: dict[str, list[FileMark]] = defaultdict(list)
        metadata: dict[str, str] = {}
        try:
            for meta in chain.from_iterable(self._store.list()):
                key = meta["path"]
                if not _is_wanted(key, topics):
                    continue
                own = _segment_of_key(key)
                marks[own].append((key, meta["size"], meta["e_tag"] or meta["last_modified"]))
                if key.endswith(ObjectKind.METADATA):
                    metadata[key] = own
        except (BaseError, OSError) as error:
            raise UnreadableSource(f"can't read the tier: {first_line(error)}") from error
        return {key: SegmentStamp.of(marks[own]) for key, own in metadata.items()}

    def read_segments(self, keys: Collection[str]) -> tuple[RemoteSegment, ...]:
        """The segments that some of `metadata_keys` are of, by topic, partition and start offset.

        :raises UnreadableSource: When one can't be read.
        """
        from obstore.exceptions import BaseError

        try:
            with ThreadPoolExecutor(_READERS) as readers:
                metadata = list(readers.map(self._get_if_there, keys))
        except (BaseError, OSError) as error:
            raise UnreadableSource(f"can't read the tier: {first_line(error)}") from error
        found, unreadable = [], []
        for key, data in zip(keys, metadata, strict=True):
            try:
                if data is not None:
                    found.append(RemoteSegment.from_json(data))
            except CorruptMetadata as error:
                unreadable.append((key, str(error)))
        self.unreadable = tuple(unreadable)
        return tuple(sorted(found, key=_sort_key))

    def read(self, key: str) -> bytes:
        """An object, whole.

        :raises FileNotFoundError: When there is none.
        :raises OSError: When it can't be read.
        """
        from obstore.exceptions import BaseError

        try:
            return self._get(key)
        except BaseError as error:
            raise OSError(f"{key}: {first_line(error)}") from error

    def size_of(self, key: str) -> int:
        """Bytes of an object; raises as `read` does."""
        from obstore.exceptions import BaseError

        try:
            return self._store.head(key)["size"]
        except BaseError as error:
            raise OSError(f"{key}: {first_line(error)}") from error

    def read_range(self, key: str, start: int, end: int) -> Buffer:
        """The bytes of an object from `start` to `end` (exclusive); raises as `read` does."""
        from obstore.exceptions import BaseError

        try:
            return memoryview(self._store.get_range(key, start=start, end=end))
        except BaseError as error:
            raise OSError(f"{key}: {first_line(error)}") from error

    def _get(self, key: str) -> bytes:
        return self._store.get(key).bytes().to_bytes()

    def _get_if_there(self, key: str) -> bytes | None:
        try:
            return self._get(key)
        except FileNotFoundError:
            return None  # it was deleted since it was listed


def _folder(path: Path) -> ObjectStoreMethods:
    from obstore.store import LocalStore

    if not path.is_dir():
        raise UnreadableSource(f"there is no tier in {path}")
    return LocalStore(path)


def partition_of_key(key: str) -> tuple[str, int]:
    """Topic and partition of an object, from its key: ``TOPIC-TOPICID/PARTITION/...``."""
    return _topic_of_key(key), int(key.split("/")[1])


def _segment_of_key(key: str) -> str:
    """What the keys of all objects of a segment begin with: suffixes alone have dots."""
    folder, _, name = key.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}"


def _topic_of_key(key: str) -> str:
    return key.partition("/")[0][: -_ID_LENGTH - 1]


def _is_wanted(key: str, topics: Collection[str] | None) -> bool:
    return topics is None or _topic_of_key(key) in topics


def _sort_key(segment: RemoteSegment) -> tuple[str, int, int, str]:
    partition = segment.partition
    return partition.topic, partition.index, segment.start_offset, segment.id.hex
