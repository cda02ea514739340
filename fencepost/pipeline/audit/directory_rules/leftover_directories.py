"""The directories of partitions that are on their way in or out, and what a restart does with them.

- ``-delete``: the log of a topic that was deleted, or of a replica that was moved away; a broker
  that starts deletes it.
- ``-future``: a copy that is being moved here from another directory of the broker (KIP-113); a
  broker that starts goes on with the move, or begins it again.
- ``-stray``: the log of a replica that the cluster does not have there. It stays, and nothing of
  it is served.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.directory_rule import (
    DirectoryEvidence,
    DirectoryRule,
    directory_violation,
)
from fencepost.pipeline.audit.rule import Severity, Violation
from fencepost.storage.formats import file_names
from fencepost.storage.formats.file_names import DirectoryState

NAME: Final = "leftover-directories"
_RESTART: Final = {
    DirectoryState.DELETED: "it was deleted: a broker that starts removes it",
    DirectoryState.FUTURE: "it is a copy of a log that is moved here: "
    "a broker that starts goes on with the move, or begins it again",
    DirectoryState.STRAY: "the cluster had no such replica when the broker started: "
    "a broker that starts keeps it, and serves nothing of it",
}


def check(evidence: DirectoryEvidence) -> Iterator[Violation]:
    """Each of them, as explained; and copies of logs that are not there."""
    listing = evidence.listing
    for name, each in listing.partitions.items():
        if each.state is DirectoryState.LIVE:
            continue
        is_cut = len(name) == file_names.MAX_NAME
        yield directory_violation(
            NAME,
            listing,
            f"{name} is left over",
            _RESTART[each.state],
            partition=None if is_cut else (each.topic, each.partition),
        )


RULE: Final = DirectoryRule(
    name=NAME,
    about="Which directories of partitions are on their way in or out.",
    source="KIP-113, Kafka's LogManager",
    order=3,
    severity=Severity.REBUILT,
    remedy="start the broker, which deals with it",
    check=check,
)
