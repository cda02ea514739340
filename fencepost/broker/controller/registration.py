"""When the controller gives a broker up; on its own, because whoever only asks needs it too."""

from enum import StrEnum


class Fence(StrEnum):
    """When the controller marks a broker offline that it hears no more of."""

    NOW = "now"
    TIMEOUT = "timeout"
    """After ``broker.session.timeout.ms``."""
    NEVER = "never"
    """Not at all: it goes on believing in the broker, and elects nobody in its place."""
