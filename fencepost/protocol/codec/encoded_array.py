"""Arrays of structs that are encoded already, to be put into a response as they are.

What is the same in many responses is encoded once and kept: the topics of a large cluster take
longer to encode than all else that is done for a request. Such an array stands in a message in the
place of the tuple of its structs. Only the arrays whose structs are named by `MAY_BE_ENCODED` may
be given so, and only in a message that is encoded and looked through for its error codes
(`fencepost.protocol.codec.error_codes`), but not read otherwise.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

MAY_BE_ENCODED: Final = frozenset({"MetadataResponseTopic", "MetadataResponsePartition"})
"""The structs whose arrays may be given encoded, by the names of their classes."""


class EncodedArray(Struct, frozen=True):
    """The elements of an array, for one version of its API."""

    count: int
    """How many elements it has."""
    data: bytes
    """The elements one behind the other, without the length of the array."""
    errors: tuple[int, ...] = ()
    """The error codes in the elements but 0, in order, with repetitions."""

    def __len__(self) -> int:
        return self.count


def join_arrays(arrays: Iterable[EncodedArray]) -> EncodedArray:
    """The elements of all, in order."""
    parts = tuple(arrays)
    return EncodedArray(
        sum(part.count for part in parts),
        b"".join([part.data for part in parts]),
        tuple(code for part in parts for code in part.errors),
    )
