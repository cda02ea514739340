"""The highest version of each API that a release of Apache Kafka served, for ``--like-kafka``.

The table of APIs has the versions (`Api.releases`). They are those of the message definitions
(``common/message`` in kafka-clients; before 2.2 the schemas of ``Protocol`` and of the requests) of
a release's brokers: with ZooKeeper to 3.2, in KRaft mode from 3.3 on, where it left preview.
Versions that a release called unstable do not count.
"""

import re
from typing import Final

from fencepost.protocol.apis import APIS, Api

NOT_SERVED: Final = -1
"""In place of a highest version: the API is not served at all."""

RELEASES: Final = (
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"),
    *("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3"),
)
"""Every release that changed or kept the APIs, from the first that has ApiVersions on, in order."""

_INDISPENSABLE: Final = frozenset({"produce", "fetch", "list_offsets"})
"""Served in their lowest version where a release had none that is spoken here (0.10)."""

_RELEASE: Final = re.compile(r"v?(0\.\d+(?:\.\d+)?|[1-9]\d*\.\d+)(?:\.\d+)?")


def find_release(text: str) -> str:
    """The release that a text names: ``2.0`` for ``2.0``, ``2.0.1`` or ``v2.0``.

    A text that names several, as ``0.10`` does, is the last of them.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    found = _RELEASE.fullmatch(text)
    if found is None:
        raise ValueError("is not a release of Kafka, such as 2.0")
    release = found[1]
    for known in reversed(RELEASES):
        if known == release or known.startswith(f"{release}."):
            return known
    raise ValueError(f"is not a release that is known; they are {', '.join(RELEASES)}")


def highest_version(api: Api, release: str) -> int:
    """What a release's brokers served of an API (inclusive); NOT_SERVED where it had none.

    :param release: One of RELEASES.
    """
    position = RELEASES.index(release)
    highest = NOT_SERVED
    for change in api.releases.split():
        since, _, version = change.partition(":")
        if RELEASES.index(since) > position:
            break
        highest = int(version)
    return highest


def release_ceilings(release: str) -> dict[str, int]:
    """The highest versions to serve as a release did, by API name; NOT_SERVED for none.

    An API that a release had in versions only that are too old to be spoken here is not served,
    except those that no client can do without.

    :param release: One of RELEASES.
    """
    return {api.name: _ceiling(api, highest_version(api, release)) for api in APIS}


def _ceiling(api: Api, highest: int) -> int:
    if highest >= api.min_version:
        return min(highest, api.max_version)
    return api.min_version if api.name in _INDISPENSABLE else NOT_SERVED
