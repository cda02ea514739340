"""What was asked of a cluster, from its trace files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """A produce request of one batch."""

    client_id: str
    expected: int
    epoch: int
    """In which it was appended; -1: it was not."""
    error: int | None
    """None: it was not answered."""

    @property
    def is_acknowledged(self) -> bool:
        return self.error == 0

    @property
    def is_refused(self) -> bool:
        """Whether nothing was appended."""
        return self.epoch < 0


def appends(directory: Path) -> Iterator[Append]:
    """The produce requests, in the order in which they were answered."""
    for path in sorted(directory.iterdir()):
        for line in path.read_text().splitlines():
            is_event = line.startswith('{"event"')
            if '"api":"Produce"' in line and not is_event:  # most are what followers ask
                yield _append(json.loads(line))


def _append(exchange: Mapping[str, Any]) -> Append:
    ((part,),) = (topic["partition_data"] for topic in exchange["request"]["topic_data"])
    (batch,) = part["records"]["batches"]
    answer = exchange["response"]
    error = None
    if answer is not None:
        ((answered,),) = (topic["partition_responses"] for topic in answer["responses"])
        error = answered["error_code"]
    return Append(
        client_id=exchange["client_id"],
        expected=batch["base_offset"],
        epoch=batch["epoch"],
        error=error,
    )
