"""``--data-dir`` on a copy of what a real Kafka 4.3.1 wrote: the same records, and its groups."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.durability.conftest import Serve
from tests.durability.test_restarts import ask
from tests.harness.confluent import delivered, send
from tests.harness.kafka_writes import COMMITTED, GROUP, KafkaWrites, stored


@pytest.mark.parametrize("ending", ["killed", "stopped"])
def test_a_real_kafkas_directory_is_served(
    serve: Serve, kafka_wrote: KafkaWrites, tmp_path: Path, ending: str
) -> None:
    wrote = kafka_wrote.killed if ending == "killed" else kafka_wrote.stopped
    folder = wrote.copy(tmp_path / "copy")
    served = serve(brokers=1, directory=folder)
    for process in range(2):
        served.start()
        cluster = served.cluster
        opened = served.found()
        assert opened["adopted"] is (process == 0)
        assert opened["clean"] is (ending == "stopped" and process == 0)
        assert (opened["strays"], opened["missing"]) == ([], [])
        assert opened["dropped_configs"] == []
        configs = {each["name"]: each["configs"] for each in ask(served, "/v1/topics")}
        assert configs["__consumer_offsets"]["cleanup.policy"] == "compact"
        assert configs["compacted"] == {
            "cleanup.policy": "compact",
            "index.interval.bytes": "300",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "10000",
        }
        assert configs["empty"] == {}
        for (topic, partition), written in wrote.partitions.items():
            start, end = written.log_start_offset, written.log_end_offset
            assert cluster.end_offset(topic, partition, timestamp=-2) == start, topic
            assert cluster.end_offset(topic, partition) == end + (topic == "empty") * process
            if topic != "empty":
                assert stored(cluster, topic, partition, start, end) == written.batches, topic
        with closing(
            Consumer({"bootstrap.servers": served.bootstrap, "group.id": GROUP})
        ) as consumer:
            (place,) = consumer.committed([TopicPartition("plain", 0)], timeout=30)
        assert place.offset == COMMITTED
        delivered(send(cluster, "empty", [b"ours"], enable_idempotence="true"))
        served.kill()
