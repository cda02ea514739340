"""The states of a transaction, and the transitions that are allowed.

An id begins EMPTY. Its first partition makes it ONGOING. A decision makes it PREPARE_COMMIT or
PREPARE_ABORT, from which there is no way back: the coordinator sends markers to every partition,
and then it is COMPLETE_COMMIT or COMPLETE_ABORT. From there InitProducerId makes it EMPTY, and the
next partition ONGOING. With ``transaction.version`` 2 a producer that does not know whether it has
added a partition may abort where nothing is ongoing (KIP-890).

DEAD and PREPARE_EPOCH_FENCE are never in the log. An id is DEAD from its tombstone's append to its
commit. PREPARE_EPOCH_FENCE is Kafka's step between the bump of an epoch that fences a producer and
the abort of its transaction; here both are one decision, and only the name is known.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class TransactionState(IntEnum):
    """A state, by its id in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name for it, such as ``PrepareCommit``."""
        return _TITLES[self]


_TITLES: Final = tuple(
    "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState
)
"""By the ids, which count from 0."""
_S: Final = TransactionState
IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is open: the id may expire, and its producer get the next epoch."""
PREPARING: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""The transaction is decided, and its markers are on their way."""

TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = MappingProxyType(
    {
        _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.ONGOING: frozenset(
            {_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}
        ),
        _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
        _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
        _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.DEAD: frozenset(),
        _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
    }
)
"""The states that may follow each state."""
BY_TITLE: Final[Mapping[str, TransactionState]] = MappingProxyType(
    {state.title: state for state in TransactionState}
)
"""The states by Kafka's names."""
