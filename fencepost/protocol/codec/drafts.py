"""Drafts: schemas of proposals that Kafka, and so kio, does not have, as data.

A draft has a name and, for some versions of some APIs, schemas of its own. Each is described by its
difference from a version that kio has (``base``): a struct whose fields differ is listed with all
its fields in wire order. A plain name is the field of the base; a `DraftField` is new in this
version, or of another type. A field that is not listed is not there. Structs that are not listed
are as in the base. A version may be one that Kafka has with another schema, or one beyond.

A draft is chosen by connection (``Peer.dialect`` of the server, ``Connection.dialect`` of the
client), which hands it to the codec with each message. On such a connection, too, all other
versions are Kafka's. A broker that serves a draft names its ``feature`` among the supported ones of
ApiVersions; a client asks for it by a tagged field of its ApiVersionsRequest, which brokers that
don't know it pass over.

To add a field or a version: add it to a draft below, or a draft to `DRAFTS`, with a tagged field of
the ApiVersionsRequest, or no client can ask for it; run ``python -m tools.generate_messages``,
which gives the message classes the new fields; read the field in the handler.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from fencepost.protocol.apis import Api
    from fencepost.protocol.codec.schema import Side

WireType: TypeAlias = Literal[
    "bool",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float64",
    "string",
    "bytes",
    "uuid",
    "presence",
]
"""As on the wire; ``presence`` is a tagged field without bytes, True where it is there."""


class DraftField(Struct, frozen=True):
    """A field that the base version does not have, or has with another type.

    Where the message class has a field of this name already, which other versions use, it has to be
    of the same Python type, and ``default`` the same.
    """

    name: str
    kind: WireType
    """Of the field, or of an array's elements."""
    default: int | float | str | bytes | tuple[()] | None
    """What the message has in versions without this field."""
    array: bool = False
    nullable: bool = False
    tag: int | None = None
    """A tagged field (KIP-482); then ``default`` is not written."""


Layout: TypeAlias = tuple[str | DraftField, ...]
"""All fields of a struct in wire order; tagged fields anywhere."""
Layouts: TypeAlias = Mapping[str, Layout]
"""Layouts by the name of the message class."""


class DraftVersion(Struct, frozen=True, kw_only=True):
    """The schemas of one version of an API, request and answer."""

    base: int
    """The version that kio has and these differ from; flexible if and only if this version is."""
    request: Layouts = field(default_factory=dict)
    response: Layouts = field(default_factory=dict)

    def layouts(self, side: "Side") -> Layouts:
        """Those of one side."""
        return self.request if side == "request" else self.response


class Draft(Struct, frozen=True, kw_only=True, eq=False):
    """A proposal's schemas."""

    name: str
    versions: Mapping[tuple[str, int], DraftVersion]
    """By API name and version."""

    @property
    def feature(self) -> str:
        """The supported feature, of level 1, that brokers name which serve it to who asks."""
        return self.name.replace("-", ".")

    def find(self, api: str, version: int) -> DraftVersion | None:
        """The schemas of a version; None where it is Kafka's."""
        return self.versions.get((api, version))

    def serves(self, api: "Api", version: int) -> bool:
        """Whether this draft has schemas of its own for a version."""
        return (api.name, version) in self.versions

    def replaces(self, api: "Api", version: int) -> bool:
        """Whether peers have to agree on a version: it is not Kafka's with more tagged fields."""
        changed = self.versions.get((api.name, version))
        return changed is not None and changed.base != version

    def highest(self, api: "Api") -> int | None:
        """The highest version of an API that this draft replaces; None where it has none."""
        replaced = (v for name, v in self.versions if name == api.name and self.replaces(api, v))
        return max(replaced, default=None)


_API_VERSIONS_REQUEST: Final = {
    "ApiVersionsRequest": (
        "client_software_name",
        "client_software_version",
        DraftField("dialect_requested", "presence", False, tag=10_320),
    )
}

KIP_320_DRAFT: Final = Draft(
    name="kip-320-draft",
    versions=MappingProxyType(
        {
            ("api_versions", 3): DraftVersion(base=3, request=_API_VERSIONS_REQUEST),
            ("api_versions", 4): DraftVersion(base=4, request=_API_VERSIONS_REQUEST),
            ("fetch", 9): DraftVersion(
                base=8,
                request={
                    "FetchPartition": (
                        "partition",
                        "fetch_offset",
                        "log_start_offset",
                        DraftField("last_fetched_epoch", "int32", -1),
                        "partition_max_bytes",
                    )
                },
            ),
            ("list_offsets", 4): DraftVersion(
                base=3,
                response={
                    "ListOffsetsPartitionResponse": (
                        "partition_index",
                        "offset",
                        DraftField("leader_epoch", "int32", -1),
                        "timestamp",
                        "error_code",
                    )
                },
            ),
            ("offset_commit", 6): DraftVersion(
                base=5,
                request={
                    "OffsetCommitRequestPartition": (
                        "partition_index",
                        "committed_offset",
                        DraftField("timestamp", "int64", -1),
                        DraftField("committed_leader_epoch", "int32", -1),
                        "committed_metadata",
                    )
                },
            ),
            ("offset_fetch", 5): DraftVersion(
                base=4,
                response={
                    "OffsetFetchResponsePartition": (
                        "partition_index",
                        "committed_offset",
                        DraftField("timestamp", "int64", -1),
                        DraftField("committed_leader_epoch", "int32", -1),
                        "metadata",
                        "error_code",
                    )
                },
            ),
        }
    ),
)
"""KIP-320 before it was accepted: other partitions in versions that Kafka released later."""

DRAFTS: Final = MappingProxyType({draft.name: draft for draft in (KIP_320_DRAFT,)})
"""All drafts by name."""


def find_draft(name: str) -> Draft:
    """The draft of a name.

    :raises ValueError: When there is none of it.
    """
    if name not in DRAFTS:
        raise ValueError(f"there is no dialect {name!r}; the dialects are {', '.join(DRAFTS)}")
    return DRAFTS[name]
