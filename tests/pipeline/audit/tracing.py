"""Clusters whose traces are audited, and a client that asks just what it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.segment_scan import scan_folder
from fencepost.pipeline.datasource.trace_files import read_trace_directory
from fencepost.protocol.messages.fetch import FetchPartition
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness import records
from tests.harness.control_client import Json
from tests.harness.durable_cluster import DurableCluster
from tests.harness.typed_client import BlockingClient
from tests.harness.typed_requests import fetch_request, fetched, list_offsets_request
from tests.harness.wait import wait_until
from tests.pipeline.audit.rigs import Rig, followed

TOPIC: Final = "t"
TRACE_RULES: Final = tuple(name for name, rule in RULES.items() if rule.needs_trace)
LATEST: Final = -1
_LATE: Final = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR"""


class Traced(Rig):
    """A cluster with a trace, and one topic.

    :param mutant: Of `tests.pipeline.audit.trace_mutants`; None: it is sound.
    """

    def __init__(
        self,
        place: Path,
        mutant: str | None,
        configs: Mapping[str, str],
        brokers: int,
        dialect: str | None = None,
    ) -> None:
        super().__init__(place)
        settings = {"offsets.topic.num.partitions": "1", **configs}
        options = ["--trace", str(place / "trace"), "--remote", (place / "tier").as_uri()]
        if dialect is not None:
            options += ["--dialect", dialect]
        for key, value in settings.items():
            options += ["--config", f"{key}={value}"]
        program = ["fencepost"]
        if mutant is not None:
            program = ["tests.pipeline.audit.trace_mutants", mutant]
        self.served = DurableCluster(
            place / "data", place / "log", brokers=brokers, options=options, program=program
        )

    # -- the control API --------------------------------------------------------------------------

    def elect(self, leader: int, *, unclean: bool = False, topic: str = TOPIC) -> None:
        self.about(topic, "elect", leader=leader, unclean=unclean)

    def replica(self, broker: int, verb: str, **body: object) -> None:
        """Hold, release or step."""
        self.about(TOPIC, f"replicas/{broker}/{verb}", **body)

    def tell_to_delete(self, topic: str) -> None:
        self.control._ask("DELETE", f"/v1/topics/{topic}")

    def wait_for_log_start(self, offset: int) -> None:
        """Wait until retention has deleted all that comes before an offset."""

        def deleted() -> bool:
            return bool(self.control.partition(TOPIC)["log_start_offset"] == offset)

        wait_until(f"the log begins at {offset}", deleted)

    def wait_for_trace(self, text: str) -> None:
        """Wait until the trace has it: what follows may be written a moment later."""

        def written() -> bool:
            newest = max((self.place / "trace").iterdir())
            return text in newest.read_text()

        wait_until(f"{text} is in the trace", written)

    def wait_for_isr(self, *brokers: int) -> None:
        def in_sync() -> bool:
            return bool(sorted(self.control.partition(TOPIC)["isr"]) == sorted(brokers))

        wait_until(f"{brokers} are in sync", in_sync)

    # -- a client ---------------------------------------------------------------------------------

    def ask(self, broker: int, api: str, version: int, message: object) -> Json:
        """Send a request to one broker alone."""
        host, port = self.served.cluster.addresses[broker - 1]
        with closing(BlockingClient((host, port))) as client:
            return client.ask(api, version, message)

    def send(
        self,
        broker: int,
        *batches: bytes | bytearray,
        acks: int = -1,
        timeout_ms: int = 10_000,
        partitions: Sequence[int] = (0,),
    ) -> list[int]:
        """Produce batches to each partition; their error codes."""
        records = b"".join(batches)
        data = tuple(PartitionProduceData(index=each, records=records) for each in partitions)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=data),),
        )
        answer = self.ask(broker, "produce", 9, request)
        return [each.error_code for each in answer.responses[0].partition_responses]

    def latest(self, broker: int, *, epoch: int = -1, version: int = 6) -> tuple[int, int]:
        """The latest offset, and the error code."""
        request = list_offsets_request(TOPIC, LATEST, current_leader_epoch=epoch)
        (found,) = self.ask(broker, "list_offsets", version, request).topics[0].partitions
        return found.offset, found.error_code

    def fetch(self, broker: int, offset: int, *, epoch: int = -1) -> int:
        """Read at an offset; the error code."""
        asked = FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            partition_max_bytes=1 << 20,
        )
        return fetched(self.ask(broker, "fetch", 12, fetch_request((TOPIC, asked)))).error_code

    def commit(self, broker: int, group: str, offset: int, epoch: int) -> None:
        part = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=epoch
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(part,))
        request = OffsetCommitRequest(group_id=group, topics=(topic,))

        def committed() -> bool:
            answer = self.ask(broker, "offset_commit", 8, request)
            code = answer.topics[0].partitions[0].error_code
            assert code in (0, *_LATE)
            return bool(code == 0)

        wait_until("the coordinator commits", committed)

    def committed(self, broker: int, group: str) -> tuple[int, int]:
        """What a group is told: offset and epoch."""
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
        request = OffsetFetchRequest(group_id=group, topics=(topic,))

        def told() -> tuple[int, int] | None:
            answer = self.ask(broker, "offset_fetch", 7, request)
            assert answer.error_code in (0, *_LATE)
            if answer.error_code:
                return None
            (found,) = answer.topics[0].partitions
            return found.committed_offset, found.committed_leader_epoch

        return wait_until("the coordinator tells", told)

    def coordinator(self, group: str) -> int:
        """The broker that a group's offsets are with."""

        def found() -> int | None:
            request = FindCoordinatorRequest(key=group)
            answer = self.ask(1, "find_coordinator", 3, request)
            return answer.node_id if answer.error_code == 0 else None

        return wait_until("there is a coordinator", found)

    # -- the end ----------------------------------------------------------------------------------

    def audit(self) -> list[Violation]:
        """Stop it; what the rules about traces find."""
        self.stop()
        return audit(self.place)


def audit(place: Path) -> list[Violation]:
    """What the rules about traces find in what was left there."""
    data, tier = place / "data", place / "tier"
    remote = tier.as_uri() if tier.exists() else None
    rows, known = scan_folder(data, remote=remote), read_partition_metadata(data, remote=remote)
    return followed(rows, read_trace_directory(place / "trace"), known, TRACE_RULES)


def batch(first: int, count: int = 3, *, note: str = "") -> bytearray:
    """Records that state their offsets."""
    values = (f"{first + i} {note}".encode() for i in range(count))
    return records.batch(*((1_700_000_000_000, None, v) for v in values), base_offset=first)


@contextmanager
def traced(
    place: Path,
    mutant: str | None = None,
    *,
    brokers: int = 3,
    configs: Mapping[str, str] = MappingProxyType({}),
    dialect: str | None = None,
) -> Iterator[Traced]:
    """A cluster that runs."""
    made = Traced(place, mutant, configs, brokers, dialect)
    try:
        made.start()
        yield made
    finally:
        made.close()
