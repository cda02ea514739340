"""The controller: the only node that changes the cluster's metadata."""

from enum import StrEnum
from typing import Final

MAX_BROKERS: Final = 1000
"""Of a cluster."""
MAX_BROKER_ID: Final = (1 << 31) - 1
"""As ``node.id`` allows."""


class Fence(StrEnum):
    """When the controller fences a broker that it no longer reaches."""

    NOW = "now"
    TIMEOUT = "timeout"
    """After ``broker.session.timeout.ms``."""
    NEVER = "never"
    """Never: the broker stays online in the image, and leads on."""
