"""What the end of a process leaves of segments on their way in and out (Kafka's rules).

- ``.cleaned``: compaction was writing it; it goes. So do all ``.swap`` from its offset on: the
  renaming goes from the last to the first, so there are some that are not ``.swap`` yet.
- ``.swap`` otherwise: all of them are there. The segments between the first's beginning and the
  last's end are those that they replace and go, and the swaps get their names.
- ``.deleted`` and what `FileSystem.write_atomic` left goes.
- An index without its ``.log`` goes.
"""

from collections.abc import Iterable
from pathlib import PurePath

from fencepost.storage.files.batch_scan import scan_headers
from fencepost.storage.files.file_system import TEMPORARY_SUFFIX, FileSystem
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    SegmentFile,
    parse_segment_file_name,
    segment_file_name,
)


def clean_up(files: FileSystem, directory: PurePath) -> list[str]:
    """Bring a directory into order.

    :returns: Names of the files that were removed, or are in use now.
    """
    changed = [name for name in files.names(directory) if name.endswith(TEMPORARY_SUFFIX)]
    found = _segment_files(files, directory)
    changed += [_name(file) for file in found if file.state is FileState.DELETED]
    cleaned = [file for file in found if file.state is FileState.CLEANED]
    swaps = [file for file in found if file.state is FileState.SWAP]
    changed += map(_name, cleaned)
    if cleaned:
        first = min(file.offset for file in cleaned)
        changed += [_name(file) for file in swaps if file.offset >= first]
        swaps = [file for file in swaps if file.offset < first]
    _remove(files, directory, changed)
    if swaps:
        changed += _finish_swap(files, directory, swaps)
    orphans = _orphans(_segment_files(files, directory))
    _remove(files, directory, orphans)
    changed += orphans
    if changed:
        files.sync_dir(directory)
    return changed


def _finish_swap(files: FileSystem, directory: PurePath, swaps: list[SegmentFile]) -> list[str]:
    logs = [file for file in swaps if file.kind is FileKind.LOG]
    if logs:
        first = min(file.offset for file in logs)
        end = max(_end_of(files, directory / _name(file), file.offset) for file in logs)
        replaced = [
            _name(file)
            for file in _segment_files(files, directory)
            if file.state is FileState.LIVE
            and first <= file.offset < end
            and not (file.kind is FileKind.PRODUCER_SNAPSHOT and file.offset == first)
            and (file.kind is not FileKind.PRODUCER_SNAPSHOT or file.offset not in _bases(logs))
        ]
        _remove(files, directory, replaced)
        files.sync_dir(directory)
    for file in sorted(swaps, key=lambda file: file.kind is FileKind.LOG):
        live = segment_file_name(file.offset, file.kind)
        files.rename(directory / _name(file), directory / live)
    return [_name(file) for file in swaps]


def _bases(logs: list[SegmentFile]) -> set[int]:
    return {file.offset for file in logs}


def _end_of(files: FileSystem, path: PurePath, base_offset: int) -> int:
    file = files.open(path)
    try:
        end = base_offset
        for _, header in scan_headers(file.read, 0, file.size):
            end = header.next_offset
        return end
    finally:
        file.close()


def _orphans(found: Iterable[SegmentFile]) -> list[str]:
    live = [file for file in found if file.state is FileState.LIVE]
    logs = {file.offset for file in live if file.kind is FileKind.LOG}
    indexes = {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX}
    return [_name(file) for file in live if file.kind in indexes and file.offset not in logs]


def _segment_files(files: FileSystem, directory: PurePath) -> list[SegmentFile]:
    names = map(parse_segment_file_name, files.names(directory))
    return [file for file in names if file is not None]


def _name(file: SegmentFile) -> str:
    return segment_file_name(file.offset, file.kind, file.state)


def _remove(files: FileSystem, directory: PurePath, names: Iterable[str]) -> None:
    for name in names:
        files.remove(directory / name)
