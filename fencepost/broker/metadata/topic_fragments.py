"""The topics of Metadata responses as they were encoded, each valid for one image of its topic.

A cluster of ten thousand partitions has hundreds of thousands of bytes of metadata, of which a
change concerns one topic, as a rule: the others are put into the next response as they are.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from fencepost.broker.metadata.image import TopicImage

if TYPE_CHECKING:
    from fencepost.protocol.codec.encoded_array import EncodedArray

MAX_FRAGMENTS: Final = 16
"""Of a topic: clients of several versions may ask for it."""


class FragmentKey(NamedTuple):
    """What an encoded topic depends on besides its image."""

    version: int
    """Of the API."""
    online: frozenset[int]
    """The brokers that are online."""
    has_epochs: bool
    """Whether clients are told the leader epochs."""
    operations: int
    """The authorized operations, as in the response."""


class TopicFragments:
    """Topics that were encoded for clients of one listener."""

    __slots__ = ("_fragments",)

    def __init__(self) -> None:
        self._fragments: dict[str, tuple[TopicImage, dict[FragmentKey, EncodedArray]]] = {}
        """By the topic's name: the image that they are valid for, and the fragments."""

    def __len__(self) -> int:
        """The number of topics."""
        return len(self._fragments)

    def get(
        self,
        topic: TopicImage,
        key: FragmentKey,
        encode: "Callable[[TopicImage, FragmentKey], EncodedArray]",
    ) -> "EncodedArray":
        """A topic as an array of one element; encoded now where it was not before."""
        found = self._fragments.get(topic.name)
        if found is None or found[0] is not topic or len(found[1]) > MAX_FRAGMENTS:
            found = self._fragments[topic.name] = topic, {}
        fragment = found[1].get(key)
        if fragment is None:
            fragment = found[1][key] = encode(topic, key)
        return fragment

    def drop_except(self, names: Collection[str]) -> None:
        """Drop the topics that are there no more.

        :param names: Of those that there are.
        """
        if len(self._fragments) > len(names):
            for name in self._fragments.keys() - set(names):
                del self._fragments[name]
