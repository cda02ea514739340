"""read_committed consumers: each reads one partition from its beginning, and drops what is aborted.

They drop as Kafka's consumer does: by the list of aborted transactions that comes with the records,
and by the abort markers that end them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct, field

from fencepost.broker.node.broker import Broker
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import AbortedTransaction, FetchResponse
from fencepost.protocol.records import BatchHeader, iter_headers
from fencepost.protocol.transaction_markers import decode_marker
from fencepost.simulation.client_requests import EARLIEST, NO_EPOCH, ClientRequests
from fencepost.simulation.invariants import require
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.ledger import Ledger, SentBatch
from fencepost.simulation.transactions.messages import TransactionalRequests


class CommittedReader(Struct):
    """One consumer of one partition."""

    name: str
    requests: TransactionalRequests
    offsets: ClientRequests
    ledger: Ledger
    index: int
    position: int = 0
    """The next offset that it fetches."""
    seen: Counter[SentBatch] = field(default_factory=Counter)
    """How often it has handed out each transactional batch."""
    _is_waiting: bool = False

    def read(self, broker: Broker) -> None:
        """Fetch once, from a leader or a follower, unless an answer comes from the tier."""
        if not self._is_waiting:
            self._is_waiting = True
            answer = self.requests.fetch(broker, self.index, self.position)
            answer.then(partial(self._see, broker))

    def _see(self, broker: Broker, response: FetchResponse | None) -> None:
        self._is_waiting = False
        if response is None:
            return
        answer = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            earliest = self.offsets.list_offset(broker, self.index, EARLIEST, epoch=NO_EPOCH)
            if earliest.error_code == ErrorCode.NONE:
                self.position = earliest.offset
            return
        aborted = answer.aborted_transactions or ()
        for header, is_visible in _with_visibility(answer.records or (), aborted):
            is_new = header.base_offset >= self.position
            if is_visible and is_new and header.crc in self.ledger.batches:
                self._hand_out(self.ledger.batches[header.crc])
            self.position = max(self.position, header.next_offset)

    def _hand_out(self, batch: SentBatch) -> None:
        self.seen[batch] += 1
        require(must.transactions_are_isolated, self.name, batch)


def _with_visibility(
    buffers: Sequence[Buffer], aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[BatchHeader, bool]]:
    """All batches, and of each whether it is handed out: it is of no aborted transaction."""
    begins = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    is_aborted: set[int] = set()
    for buffer in buffers:
        for at, header in iter_headers(buffer):
            while begins and begins[-1].first_offset <= header.last_offset:
                is_aborted.add(begins.pop().producer_id)
            if header.is_control:
                marker = decode_marker(buffer, at)
                if marker is not None and not marker.committed:
                    is_aborted.discard(header.producer_id)
            is_visible = not header.is_transactional or header.producer_id not in is_aborted
            yield header, is_visible
