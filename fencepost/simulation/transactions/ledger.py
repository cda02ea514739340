"""What transactional producers have sent and were answered: the truth that logs are held to.

It knows nothing of coordinators: a transaction is what one producer sent between two ends, whether
it has asked for the commit, and what it was told of the end.
"""

from collections import Counter
from typing import Final, NamedTuple

from msgspec import Struct, field

from fencepost.simulation.invariants import require
from fencepost.simulation.transactions import invariants as must


class ProducerEpoch(NamedTuple):
    """A producer id with an epoch of it."""

    producer_id: int
    epoch: int


class SentBatch(Struct, eq=False):
    """A batch that a transactional producer has sent at least once."""

    transaction: "SentTransaction"
    index: int
    """Of the partition."""
    data: bytes
    crc: int
    record_count: int
    timestamp_ms: int
    is_acknowledged: bool = False


class GroupPartition(NamedTuple):
    """What offsets are committed for."""

    group: str
    partition: int


class SentOffset(Struct, eq=False):
    """An offset that a transactional producer has committed at least once; each is another."""

    transaction: "SentTransaction"
    key: GroupPartition
    offset: int
    is_acknowledged: bool = False


class SentTransaction(Struct, eq=False):
    """One transaction of one producer."""

    name: str
    """For a report: producer and number."""
    begun: int
    """When it began; moments of a ledger are numbers that rise."""
    closed: int | None = None
    """When it had certainly ended, if it has: its producer was told, or has a successor."""
    batches: list[SentBatch] = field(default_factory=list)
    offsets: dict[int, SentOffset] = field(default_factory=dict)
    """Of the producer's group, by partition."""
    asked_to_commit: bool = False
    """Whether an EndTxn was sent that commits it."""
    told: bool | None = None
    """Whether the producer was told that it is committed, or aborted; None: neither yet."""

    @property
    def may_be_committed(self) -> bool:
        """Whether read_committed consumers may see it."""
        return self.asked_to_commit and self.told is not False

    def __str__(self) -> str:
        told = {None: "not told", True: "told that it is committed", False: "told of the abort"}
        asked = "asked to commit" if self.asked_to_commit else "not asked to commit"
        return f"{self.name} ({asked}, {told[self.told]})"


SUCCESSORS_EPOCH: Final = "successors_epoch"
"""Admitted, as in Kafka 4.3: a zombie of the flow of version 2 aborts, and is given the epoch of
its successor of the flow before. See `fencepost.broker.transactions.end_transaction`."""
DELETED_MARKER: Final = "deleted_marker"
"""Admitted, as in Kafka: a replica lagged while the records of a transaction were deleted with its
marker. It never gets the marker, and keeps the transaction open."""


class Ledger:
    """All that the transactional producers of a cluster know."""

    def __init__(self) -> None:
        self.admitted: Counter[str] = Counter()
        """How often exceptions were met, by name."""
        self.offsets: dict[tuple[GroupPartition, int], SentOffset] = {}
        """All that were committed, by what for and by themselves."""
        self._moment = 0
        self._open: dict[str, list[SentTransaction]] = {}
        """The transactions of each transactional id that may be open."""
        self._holders: dict[ProducerEpoch, tuple[str, bool]] = {}
        """Which producer has got an epoch first, and whether it follows the new flow."""
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
        self._has_given = False
        """Whether there is news in this step."""

    def begin(self, name: str, transactional_id: str) -> SentTransaction:
        """A producer begins a transaction."""
        self._moment += 1
        transaction = SentTransaction(f"{name} t{len(self.transactions) + 1}", self._moment)
        self.transactions.append(transaction)
        self._open.setdefault(transactional_id, []).append(transaction)
        return transaction

    def end(self, transaction: SentTransaction, *, commits: bool) -> None:
        """A producer is told that its transaction is committed, or aborted."""
        self._moment += 1
        transaction.told = commits
        if transaction.closed is None:
            transaction.closed = self._moment

    def commit_offset(self, transaction: SentTransaction, key: GroupPartition) -> SentOffset:
        """A producer commits an offset, which no one has committed before."""
        sent = SentOffset(transaction, key, len(self.offsets) + 1)
        transaction.offsets[key.partition] = sent
        self.offsets[key, sent.offset] = sent
        return sent

    def give(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        holder: str,
        *,
        is_new_flow: bool,
        is_repeated: bool = False,
    ) -> None:
        """An answer gives a producer its id and epoch.

        :param holder: The producer's name.
        :param is_repeated: Whether an answer to the same request may have had them before.
        """
        known = self._ranks.get(producer)
        require(
            must.one_epoch_of_an_id_is_given_once, transactional_id, producer, known, is_repeated
        )
        if known is None:
            known = self._ranks[producer] = len(self._ranks)
            self._holders[producer] = (holder, is_new_flow)
            self._close_all(transactional_id)
        self._ids[producer.producer_id] = transactional_id
        self._newest[transactional_id] = max(known, self._newest.get(transactional_id, -1))
        self._has_given = True

    def is_given_to_successor(self, producer: ProducerEpoch, holder: str) -> bool:
        """Whether another producer, of the flow before, has an epoch that this one is given.

        Kafka's coordinator does not tell the end that a zombie asks for from a repeated one.
        """
        known = self._holders.get(producer, (holder, True))
        return known[0] != holder and not known[1]

    def _close_all(self, transactional_id: str) -> None:
        """A new epoch was given out: the transactions of all before it have ended."""
        self._moment += 1
        for transaction in self._open.pop(transactional_id, ()):
            if transaction.closed is None:
                transaction.closed = self._moment

    def settle(self) -> None:
        """A step is over: what was given out in it holds from now on."""
        if self._has_given:
            self._settled.update(self._newest)
            self._has_given = False

    def is_alive(self, producer: ProducerEpoch) -> bool:
        """Whether a producer's epoch is the newest of its id, as of the step before."""
        transactional_id = self._ids.get(producer.producer_id)
        if transactional_id is None:
            return True
        rank = self._ranks.get(producer)
        return rank is None or rank >= self._settled.get(transactional_id, -1)
