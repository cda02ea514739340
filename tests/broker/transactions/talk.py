"""Conversations with a transaction coordinator: played on Apache Kafka once, and on fencepost in
each run.

A conversation is a function that lets producers speak. What is answered, and what the coordinator
has written to ``__transaction_state`` by the end, is kept as JSON: ``answers.jsonl`` has that of a
real 4.3.1, which ``python -m tests.broker.transactions.record HOST:PORT`` writes. Producer ids
stand there by their order, times by whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fencepost.broker.metadata.features import TRANSACTION_VERSION, UpgradeType
from fencepost.broker.transactions.records import decode
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.describe_transactions import DescribeTransactionsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, iter_headers
from tests.broker.groups.talk import Message, as_json
from tests.harness.typed_requests import fetch_request, fetched, from_offset

UNRECORDED = {"find_coordinator", "join_group", "sync_group"}
_PRODUCER_IDS = {"producer_id", "previous_producer_id", "next_producer_id"}
_TIMES = {
    *("transaction_start_time_ms", "start_ms", "last_update_ms", "log_append_time_ms"),
    "last_timestamp",
}
_BROKERS = {"node_id", "host", "port"}


class Asker(Protocol):
    """A broker that can be asked: a driver's, or a real one."""

    def ask(self, broker_id: int, api_name: str, version: int, request: Message) -> Message: ...

    def create(self, topic: str) -> None:
        """Create a topic of two partitions; returns when they are served."""


class Talk:
    """Asks a broker, and keeps its answers."""

    def __init__(
        self,
        asker: Asker,
        pause: Callable[[], None],
        raise_epoch: Callable[[str, int], None],
        prefix: str,
    ) -> None:
        """:param prefix: Of the transactional ids: the log of a real broker has other ones."""
        self.rows: list[Message] = []
        self.prefix = prefix
        self._asker = asker
        self._pause = pause
        self._raise_epoch = raise_epoch
        self._skipped = 0
        """Up to this epoch (exclusive) the log is left out."""
        self._ids: dict[int, str] = {-1: "none"}

    def ask(self, broker_id: int, api_name: str, version: int, request: Message) -> Message:
        if api_name not in UNRECORDED:
            return self.record(broker_id, api_name, version, request)
        return self._asker.ask(broker_id, api_name, version, request)

    def record(self, broker_id: int, api_name: str, version: int, request: Message) -> Message:
        """Ask, and keep the answer of any API."""
        answer = self._asker.ask(broker_id, api_name, version, request)
        self.rows.append([api_name, version, self._plain(as_json(answer))])
        return answer

    def create(self, suffix: str) -> str:
        """A topic of two partitions of this conversation, which serves; its name."""
        name = self.name(suffix)
        self._asker.create(name)
        return name

    def find_group_coordinator(self) -> None:
        """Have the topic of offsets created."""
        request = FindCoordinatorRequest(coordinator_keys=("any",))
        self.wait_until(
            lambda: not self.ask(1, "find_coordinator", 6, request).coordinators[0].error_code
        )

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        while not condition():
            self._pause()

    def settle(self, transactional_id: str) -> None:
        """Wait until the markers of a transaction are written."""
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))

        def settled() -> bool:
            (state,) = self._asker.ask(1, "describe_transactions", 0, request).transaction_states
            return not state.transaction_state.startswith("Prepare")

        self.wait_until(settled)

    def skip_to(self, transactional_id: str, epoch: int) -> None:
        """Let the epoch of an idle id rise; what the log has of it is left out."""
        self._skipped = epoch
        self._raise_epoch(transactional_id, epoch)

    def finalize(self, level: int) -> None:
        """Set the ``transaction.version`` of the cluster, and wait until the broker knows it."""
        for kind in (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE):
            key = FeatureUpdateKey(
                feature=TRANSACTION_VERSION, max_version_level=level, upgrade_type=kind
            )
            request = UpdateFeaturesRequest(feature_updates=(key,), timeout_ms=5000)
            self._asker.ask(1, "update_features", 1, request)
        self.wait_until(lambda: self._finalized() == level)

    def _finalized(self) -> int:
        request = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
        features = self._asker.ask(1, "api_versions", 4, request).finalized_features
        levels = {each.name: each.max_version_level for each in features}
        return int(levels.get(TRANSACTION_VERSION, 0))

    def name(self, text: str) -> str:
        """A transactional id of this conversation."""
        return f"{self.prefix}{text}"

    def write_log(self) -> None:
        """Add what the log has of this conversation's transactional ids."""
        offset, end = 0, 1
        while offset < end:
            asked = fetch_request(("__transaction_state", from_offset(offset, 0)))
            answer = fetched(self._asker.ask(1, "fetch", 12, asked))
            assert answer.error_code == ErrorCode.NONE
            end = answer.high_watermark
            for buffer in answer.records or ():
                for at, header in iter_headers(buffer):
                    offset = header.next_offset
                    self._add_records(iter_records(buffer, at))

    def _add_records(self, records: Iterable[Record]) -> None:
        for stored in records:
            assert stored.key is not None
            record = decode(stored.key, stored.value)
            if record is None or not record.transactional_id.startswith(self.prefix):
                continue
            value = record.value
            if value is None or not 0 < value.producer_epoch < self._skipped:
                row = None if value is None else self._value(value)
                self.rows.append(["log", record.transactional_id.removeprefix(self.prefix), row])

    def _value(self, value: Message) -> Message:
        row = {name: getattr(value, name) for name in value.__struct_fields__}
        del row["last_producer_epoch"]  # it is not in the log
        row["state"] = value.state.title
        row["partitions"] = sorted(map(list, value.partitions))
        return self._plain(row)

    def _plain(self, value: Message) -> Message:
        """JSON without what differs between brokers and runs."""
        if isinstance(value, list):
            plain = [self._plain(each) for each in value]
            return sorted(plain, key=repr)  # Kafka has some of them in hash tables
        if isinstance(value, dict):
            return {key: self._field(key, each) for key, each in value.items()}
        if isinstance(value, str):
            return value.removeprefix(self.prefix)
        return value

    def _field(self, name: str, value: Message) -> Message:
        if name in _PRODUCER_IDS and value < 1 << 40:
            return self._ids.setdefault(value, f"id {len(self._ids) - 1}")
        if name in _BROKERS:
            return value if value in (-1, "") else "a broker"
        if name in _TIMES:
            return "never" if value == -1 else "a time"
        return self._plain(value)
