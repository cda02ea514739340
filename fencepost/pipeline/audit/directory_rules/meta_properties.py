"""The ``meta.properties`` of all log directories say one cluster, and tell the brokers apart.

What Kafka checks of one node when it starts (`MetaPropertiesEnsemble`), and the controller when it
registers, over all directories that are there:

- each directory with logs has the file, of a version that is known, with the ids that it must have;
- all of them have one cluster id;
- no two have one directory id (KIP-858);
- a node has its metadata log in one directory: another one with the same node id and a metadata log
  is another node's;
- where fencepost made the directory, its name is that of the broker.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.directory_rule import (
    DirectoryEvidence,
    DirectoryIdentity,
    DirectoryRule,
    directory_violation,
)
from fencepost.pipeline.audit.rule import Severity, Violation
from fencepost.storage.formats import file_names

NAME: Final = "meta-properties"
_FILE: Final = file_names.META_PROPERTIES
_CLUSTER: Final = "cluster.id"
_DIRECTORY: Final = "directory.id"
_VERSION: Final = "version"
_WITHOUT_KRAFT: Final = "0"
_WITH_KRAFT: Final = "1"
_Found = tuple[str, str | None]
"""A message and an explanation."""


def check(evidence: DirectoryEvidence) -> Iterator[Violation]:
    """What is missing in a directory's file, and what contradicts the others or its name."""
    listing = evidence.listing
    own = listing.identity
    others = tuple(each for each in evidence.identities if each.path != own.path)
    found = _missing_file(evidence, others) if not own.properties else _in_file(evidence, others)
    for message, explanation in found:
        yield directory_violation(NAME, listing, message, explanation)


def _missing_file(
    evidence: DirectoryEvidence, others: tuple[DirectoryIdentity, ...]
) -> Iterator[_Found]:
    listing = evidence.listing
    count = sum(1 for each in others if each.properties)
    if not count or not (listing.partitions or listing.files):
        return
    there = "is empty" if listing.identity.properties is not None else "is not there"
    others_have = "another log directory has" if count == 1 else f"{count} others have"
    message = f"{_FILE} {there}, and {others_have} one"
    if listing.broker is None:
        message += "; the logs in it are not looked at, as nothing tells of which broker they are"
    yield message, None


def _in_file(
    evidence: DirectoryEvidence, others: tuple[DirectoryIdentity, ...]
) -> Iterator[_Found]:
    own = evidence.listing.identity
    properties = own.properties or {}
    yield from _version(properties.get(_VERSION, _WITHOUT_KRAFT), others)
    if properties.get(_VERSION) == _WITH_KRAFT and not properties.get(_CLUSTER):
        yield f"{_FILE} says no {_CLUSTER}", None
    yield from _cluster(properties.get(_CLUSTER, ""), evidence)
    yield from _node(evidence, own, others)
    earlier = [each for each in others if each.path < own.path]
    directory_id = properties.get(_DIRECTORY)
    same = [each for each in earlier if (each.properties or {}).get(_DIRECTORY) == directory_id]
    if directory_id and same:
        yield f"{_FILE} says {_DIRECTORY}={directory_id}, and so does that of {same[0].path}", None


def _version(version: str, others: tuple[DirectoryIdentity, ...]) -> Iterator[_Found]:
    if version not in (_WITHOUT_KRAFT, _WITH_KRAFT):
        yield f"{_FILE} says {_VERSION}={version}, and there are 0 and 1", None
        return
    versions = {(each.properties or {}).get(_VERSION) for each in others}
    if version == _WITHOUT_KRAFT and _WITH_KRAFT in versions:
        yield (
            f"{_FILE} is of version {version}, and others are of version {_WITH_KRAFT}",
            "a broker without KRaft wrote it, and those with KRaft read it",
        )


def _cluster(cluster_id: str, evidence: DirectoryEvidence) -> Iterator[_Found]:
    """A cluster id that is not that of most; of as many it is the one that is first by path."""
    ids = [(each.properties or {}).get(_CLUSTER) for each in evidence.identities]
    counts = Counter(each for each in ids if each)
    if len(counts) < 2 or not cluster_id:
        return
    usual, count = counts.most_common(1)[0]
    if cluster_id != usual:
        others_say = "another says" if count == 1 else f"{count} others say"
        message = f"{_FILE} says {_CLUSTER}={cluster_id}, and {others_say} {usual}"
        yield f"{message}: by their topic ids they are of one cluster", None


def _node(
    evidence: DirectoryEvidence,
    own: DirectoryIdentity,
    others: tuple[DirectoryIdentity, ...],
) -> Iterator[_Found]:
    named = evidence.listing.named_broker
    if not own.node_id:
        yield f"{_FILE} says no node.id", None
    elif named is not None and own.node_id != str(named):
        yield (
            f"{_FILE} says node.id={own.node_id}, and the directory is that of broker {named}",
            None,
        )
    elif evidence.listing.broker is None:
        same = [each for each in others if each.node_id == own.node_id and each.has_metadata_log]
        where = " and ".join(each.path for each in same)
        message = f"{_FILE} says node.id={own.node_id}, and so does that of {where}"
        message += ", which has a metadata log too: they are of two nodes"
        yield f"{message}, and the logs in this one are not looked at", None


RULE: Final = DirectoryRule(
    name=NAME,
    about="The meta.properties of all log directories agree, and tell the brokers apart.",
    source="KIP-631, KIP-858",
    order=1,
    severity=Severity.DAMAGE,
    remedy="stop the broker, and write the ids into the file that it and its directory had before",
    check=check,
)
