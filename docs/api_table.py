"""The APIs of Apache Kafka 4.3.1 beside those of fencepost: a table of docs/conformance.md.

What a broker of 4.3.1 advertises to clients is what the recorded one said; the names, and the APIs
that only Kafka's nodes speak to each other, are those of kio's schemas.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kio.schema.index import api_key_map, schema_name_map

from fencepost.protocol.apis import BY_KEY, Api

_ROWS: Final = Path(__file__).parent.parent / "tests" / "oracle" / "rows" / "single.json"
_KEY_LIST: Final = "full v4 key list"

CONSUMER_GROUPS: Final = "comes with the consumer protocol (KIP-848)"
SHARE_GROUPS: Final = "comes with share groups (KIP-932)"
STREAMS_GROUPS: Final = "comes with streams groups (KIP-1071)"
THIS_RELEASE: Final = "not yet"
BETWEEN_NODES: Final = "between Kafka's own nodes; no client sends it"

LATER: Final[Mapping[str, str]] = {
    "add_raft_voter": THIS_RELEASE,
    "alter_share_group_offsets": SHARE_GROUPS,
    "consumer_group_describe": CONSUMER_GROUPS,
    "consumer_group_heartbeat": CONSUMER_GROUPS,
    "delete_share_group_offsets": SHARE_GROUPS,
    "delete_share_group_state": SHARE_GROUPS,
    "describe_share_group_offsets": SHARE_GROUPS,
    "initialize_share_group_state": SHARE_GROUPS,
    "list_config_resources": THIS_RELEASE,
    "read_share_group_state": SHARE_GROUPS,
    "read_share_group_state_summary": SHARE_GROUPS,
    "remove_raft_voter": THIS_RELEASE,
    "share_acknowledge": SHARE_GROUPS,
    "share_fetch": SHARE_GROUPS,
    "share_group_describe": SHARE_GROUPS,
    "share_group_heartbeat": SHARE_GROUPS,
    "streams_group_describe": STREAMS_GROUPS,
    "streams_group_heartbeat": STREAMS_GROUPS,
    "write_share_group_state": SHARE_GROUPS,
}
"""What a later release brings, of the APIs that are advertised to clients."""

_WITHOUT_AUTHORIZER: Final = "as of a cluster without an authorizer"
_PLAINTEXT: Final = "as on a plaintext listener"
_WITHOUT_CREDENTIALS: Final = "as of a cluster without any"
_NOT_STORED: Final = "checked; what is valid and would be stored is UNSUPPORTED_VERSION"
DIFFERS: Final[Mapping[str, str]] = {
    "alter_client_quotas": _NOT_STORED,
    "alter_user_scram_credentials": _NOT_STORED,
    "create_acls": _WITHOUT_AUTHORIZER,
    "create_delegation_token": _PLAINTEXT,
    "delete_acls": _WITHOUT_AUTHORIZER,
    "describe_acls": _WITHOUT_AUTHORIZER,
    "describe_client_quotas": _WITHOUT_CREDENTIALS,
    "describe_delegation_token": _PLAINTEXT,
    "describe_user_scram_credentials": _WITHOUT_CREDENTIALS,
    "expire_delegation_token": _PLAINTEXT,
    "init_producer_id": "v6 is unstable in 4.3.1; two-phase commits are not enabled",
    "list_transactions": "patterns are Python's, where Kafka's are RE2's",
    "produce": "v0 to v2 are advertised, as by Kafka, and refused (KAFKA-18659)",
    "renew_delegation_token": _PLAINTEXT,
    "sasl_authenticate": _PLAINTEXT,
    "sasl_handshake": _PLAINTEXT,
}
"""What is to be known of an API that is served."""


def advertised() -> dict[int, tuple[int, int]]:
    """The versions (both inclusive) that a broker of 4.3.1 advertised to clients, by API key."""
    (listed,) = (keys for _, request, keys in json.loads(_ROWS.read_text()) if request == _KEY_LIST)
    return {key: (low, high) for key, low, high in listed}


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Key, name, the versions here and those of 4.3.1, and what is to be known."""
    known = advertised()
    for key, name in sorted(api_key_map.items()):
        ours = BY_KEY.get(key)
        yield (
            str(key),
            "".join(word.capitalize() for word in name.split("_")),
            versions(ours.min_version, ours.max_version) if ours else "",
            versions(*known[key]) if key in known else _internal(name, ours),
            note(key, name),
        )


def note(key: int, name: str) -> str:
    """What is to be known of one API; empty where there is nothing."""
    if key in BY_KEY:
        return DIFFERS.get(name, "")
    return LATER[name] if key in advertised() else BETWEEN_NODES


def versions(low: int, high: int) -> str:
    """A span of versions, both inclusive."""
    return str(low) if low == high else f"{low}-{high}"


def _internal(name: str, ours: Api | None) -> str:
    """The versions of an API that the recorded broker did not advertise to clients."""
    found = schema_name_map[name]
    span = versions(min(found), max(found))
    return span if ours is None else f"{span}, where it is configured"
