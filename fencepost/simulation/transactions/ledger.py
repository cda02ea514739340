"""What transactional producers have sent and were answered: the truth that logs are held to.

It knows nothing of coordinators: a transaction is what one producer sent between two ends, whether
it has asked for the commit, and what it was told of the end.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from fencepost.simulation.invariants import require
from fencepost.simulation.transactions import invariants as must


class ProducerEpoch(NamedTuple):
    """A producer id with an epoch of it."""

    producer_id: int
    epoch: int


@dataclass(slots=True, eq=False)
class SentBatch:
    """A batch that a transactional producer has sent at least once."""

    transaction: "SentTransaction"
    index: int
    """Of the partition."""
    data: bytes
    crc: int
    record_count: int
    is_acknowledged: bool = False


@dataclass(slots=True, eq=False)
class SentTransaction:
    """One transaction of one producer."""

    name: str
    """For a report: producer and number."""
    batches: list[SentBatch] = field(default_factory=list)
    asked_to_commit: bool = False
    """Whether an EndTxn was sent that commits it."""
    told: bool | None = None
    """Whether the producer was told that it is committed, or aborted; None: neither yet."""

    def __str__(self) -> str:
        told = {None: "not told", True: "told that it is committed", False: "told of the abort"}
        asked = "asked to commit" if self.asked_to_commit else "not asked to commit"
        return f"{self.name} ({asked}, {told[self.told]})"


class Ledger:
    """All that the transactional producers of a cluster know."""

    def __init__(self) -> None:
        self.transactions: list[SentTransaction] = []
        self.batches: dict[int, SentBatch] = {}
        """By checksum, which tells them apart: each has another value."""
        self._ids: dict[int, str] = {}
        """The transactional id of each producer id."""
        self._ranks: dict[ProducerEpoch, int] = {}
        """The order in which producer ids and epochs were given out."""
        self._newest: dict[str, int] = {}
        """The rank that each transactional id has got last."""
        self._settled: dict[str, int] = {}
        """The same, before this step."""

    def begin(self, name: str) -> SentTransaction:
        """A producer begins a transaction."""
        transaction = SentTransaction(f"{name} t{len(self.transactions) + 1}")
        self.transactions.append(transaction)
        return transaction

    def give(
        self, transactional_id: str, producer: ProducerEpoch, *, is_repeated: bool = False
    ) -> None:
        """An answer gives a producer its id and epoch.

        :param is_repeated: Whether an answer to the same request may have had them before.
        """
        known = self._ranks.get(producer)
        require(
            must.one_epoch_of_an_id_is_given_once, transactional_id, producer, known, is_repeated
        )
        if known is None:
            known = self._ranks[producer] = len(self._ranks)
        self._ids[producer.producer_id] = transactional_id
        self._newest[transactional_id] = max(known, self._newest.get(transactional_id, -1))

    def settle(self) -> None:
        """A step is over: what was given out in it holds from now on."""
        self._settled.update(self._newest)

    def is_alive(self, producer: ProducerEpoch) -> bool:
        """Whether a producer's epoch is the newest of its id, as of the step before."""
        transactional_id = self._ids.get(producer.producer_id)
        if transactional_id is None:
            return True
        rank = self._ranks.get(producer)
        return rank is None or rank >= self._settled.get(transactional_id, -1)
