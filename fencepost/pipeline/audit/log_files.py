"""The segments of logs that are read for what they say: cluster metadata, and the tier's.

Nodes have copies of such a log. Of two that part, the one whose last batch has the higher epoch is
the newer, and of two of the same epoch the longer one (KIP-101, KIP-595).
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from fencepost.protocol.records import BatchHeader
from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.files.index_lookup import scan_headers
from fencepost.storage.formats.file_names import FileKind, FileState, parse_segment_file_name


def find_segments(directory: Path) -> dict[int, Path]:
    """The segments in use, by base offset.

    :raises OSError: When the directory can't be read.
    """
    found = {}
    for path in directory.iterdir():
        parsed = parse_segment_file_name(path.name)
        if parsed is not None and (parsed.kind, parsed.state) == (FileKind.LOG, FileState.LIVE):
            found[parsed.offset] = path
    return found


def whole_headers(segment: Path) -> Iterator[BatchHeader]:
    """Those of a segment's whole batches, up to the first that is none.

    :raises OSError: When the file can't be read.
    """
    with segment.open("rb") as opened:

        def read(start: int, stop: int) -> bytes:
            opened.seek(start)
            return opened.read(stop - start)

        with suppress(DamagedSegment):
            for _, header in scan_headers(read, 0, segment.stat().st_size):
                yield header


def last_header(segments: Mapping[int, Path]) -> BatchHeader | None:
    """That of the last whole batch, None without one: the last segment may have none yet.

    :raises OSError: When a file can't be read.
    """
    for base in sorted(segments, reverse=True):
        last = deque(whole_headers(segments[base]), maxlen=1)
        if last:
            return last[0]
    return None
