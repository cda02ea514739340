"""Which of a broker's log directories a new log goes to (KIP-113, KIP-1066).

A log goes to the directory that was asked for (AlterReplicaLogDirs of a partition that is not here
yet), else to the one with the fewest logs, of those that are not cordoned. Where all are, the first
one takes it, as in Kafka.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

Key = tuple[str, int]
"""Topic and partition."""
IN_MEMORY: Final = "/tmp/kafka-logs"  # noqa: S108  # Kafka's default, and a name alone
"""The first directory where logs are kept in memory: the default of ``log.dir``."""
ALL: Final = "*"
"""In ``cordoned.log.dirs``: every directory."""


class LogDirPlacement:
    """The log directories of one broker, by the names that clients see.

    :ivar names: All of them, in the order of ``log.dirs``; at least one.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names: Final = tuple(names)
        self._preferred: dict[Key, str] = {}

    def prefer(self, key: Key, name: str) -> None:
        """Put a log that is not here yet into a directory, when it is made."""
        self._preferred[key] = name

    def choose(self, key: Key, cordoned: Collection[str], count: Callable[[str], int]) -> str:
        """The directory of a new log.

        :param cordoned: The value of ``cordoned.log.dirs``.
        :param count: How many logs a directory has.
        """
        preferred = self._preferred.pop(key, None)
        if preferred is not None:
            return preferred
        open_ones = [name for name in self.names if not is_cordoned(name, cordoned)]
        return min(open_ones or self.names[:1], key=count)


def is_cordoned(name: str, cordoned: Collection[str]) -> bool:
    """Whether a directory takes no new logs.

    :param cordoned: The value of ``cordoned.log.dirs``.
    """
    return name in cordoned or ALL in cordoned


def directory_names(first: str, count: int) -> tuple[str, ...]:
    """The names of a broker's log directories: the first, and others beside it.

    The first one is where a broker with one directory has its logs.

    :param count: How many there are, from 1 on.
    """
    return (first, *(f"{first}.d{number}" for number in range(1, count)))
