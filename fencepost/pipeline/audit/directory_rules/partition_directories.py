"""Each partition that a checkpoint of a log directory names has its directory there.

Kafka writes the checkpoints of a directory for the logs in it, and writes them when its broker ends
in order. So a partition that they name and that has no directory was lost, unless

- the broker did not end in order: then a topic may have been deleted, or a replica moved away,
  since they were written;
- it is there under another name, about to be deleted or a stray (`leftover_directories`);
- another directory of the broker has it: it was moved there (KIP-113);
- no partition is left in the directory: then Kafka no longer writes
  ``replication-offset-checkpoint``, which goes on naming those of before.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.directory_rule import (
    DirectoryEvidence,
    DirectoryListing,
    DirectoryRule,
    directory_violation,
)
from fencepost.pipeline.audit.rule import Severity, TopicPartition, Violation
from fencepost.pipeline.datasource.log_directories import METADATA_TOPIC, OFFSET_CHECKPOINTS
from fencepost.storage.formats import file_names
from fencepost.storage.formats.file_names import DirectoryState

NAME: Final = "partition-directories"


def check(evidence: DirectoryEvidence) -> Iterator[Violation]:
    """Partitions that are named, and have no directory."""
    listing = evidence.listing
    named = {name: listing.checkpoint(name) for name in OFFSET_CHECKPOINTS}
    missing = {key for offsets in named.values() for key in offsets} - listing.logs
    for key in sorted(missing):
        if key[0] == METADATA_TOPIC or _has_another_name(listing, key):
            continue
        files = [name for name, offsets in named.items() if key in offsets]
        yield directory_violation(
            NAME,
            listing,
            f"there is no {file_names.directory_name(*key)}, which {_shown(files)} "
            f"name{'s' * (len(files) == 1)}",
            _explanation(evidence, key, files),
            partition=key,
            offset=max(named[name][key] for name in files),
        )


def _has_another_name(listing: DirectoryListing, key: TopicPartition) -> bool:
    """Whether its directory is about to be deleted, or is a stray."""
    return any(
        each.partition == key[1] and is_name_of(name, each.topic, key[0])
        for name, each in listing.partitions.items()
        if each.state in (DirectoryState.DELETED, DirectoryState.STRAY)
    )


def is_name_of(name: str, shown: str, topic: str) -> bool:
    """Whether a directory that is not live may be of a topic, whose name may be cut short in it."""
    is_cut = len(name) == file_names.MAX_NAME
    return topic == shown or (is_cut and topic.startswith(shown))


def _explanation(evidence: DirectoryEvidence, key: TopicPartition, files: list[str]) -> str | None:
    listing = evidence.listing
    for sibling in evidence.siblings:
        if key in sibling.logs:
            return f"broker {listing.broker} has it in {sibling.path}"
    if not listing.clean:
        return (
            "the broker has not ended in order: a topic that was deleted, or a replica that was "
            "moved away, since the checkpoints were written"
        )
    if files == [file_names.HIGH_WATERMARKS] and not listing.logs:
        return "no partition is left in the directory, and then the file is not written any more"
    return None


def _shown(files: list[str]) -> str:
    return " and ".join((", ".join(files[:-1]), files[-1])) if len(files) > 1 else files[0]


RULE: Final = DirectoryRule(
    name=NAME,
    about="Each partition that the checkpoints of a log directory name has its directory.",
    source="Kafka's LogManager and ReplicaManager",
    order=2,
    severity=Severity.DAMAGE,
    remedy="where another replica has the records, start the broker: it copies the partition again",
    check=check,
)
