"""The authorized operations of clients, as bit fields (KIP-430): without ACLs, all of them."""

from typing import Final

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
