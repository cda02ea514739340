"""Authorization in a cluster without an authorizer, as Kafka's without ``authorizer.class.name``.

Clients are authorized for all operations, which are told as bit fields (KIP-430), and requests
about ACLs are SECURITY_DISABLED.
"""

from typing import Final, NamedTuple

NOT_REQUESTED: Final = -(1 << 31)
"""The field's value if the request does not ask for it."""

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << n for n in range(3, 9))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (
    1 << n for n in range(9, 13)
)

CLUSTER: Final = (
    _CREATE
    | _ALTER
    | _DESCRIBE
    | _CLUSTER_ACTION
    | _DESCRIBE_CONFIGS
    | _ALTER_CONFIGS
    | _IDEMPOTENT_WRITE
)
TOPIC: Final = (
    _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
)
GROUP: Final = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS


class Principal(NamedTuple):
    """Whom a request is of (KIP-12)."""

    kind: str
    name: str


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of every connection on a plaintext listener."""
NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_AUTHORIZER_ON_BROKER: Final = "No Authorizer is configured on the broker"
"""What DescribeAcls says: a broker answers it by itself."""
_UNKNOWN: Final = 0


def has_unknown_elements(
    resource_type: int, pattern_type: int, operation: int, permission_type: int
) -> bool:
    """Whether an ACL or a filter has an element of type UNKNOWN.

    Kafka fails to parse such a request and closes its connection. A code that no enum has is none.
    """
    return _UNKNOWN in (resource_type, pattern_type, operation, permission_type)
