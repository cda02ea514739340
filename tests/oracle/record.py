"""``python -m tests.oracle.record NAME...``: record again what a real Kafka answers."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.oracle.comparing import RECORDINGS
from tests.oracle.steering import KafkaSteering


def record(names: list[str]) -> None:
    """Each from a Kafka of its own."""
    for recording in (each for each in RECORDINGS if each.name in names):
        with tempfile.TemporaryDirectory() as folder:
            kafka = recording.start_kafka(Path(folder) / "kafka")
            try:
                rows = recording.ask(kafka.cluster, KafkaSteering(kafka))
            finally:
                kafka.stop()
        recording.file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    record(sys.argv[1:])
