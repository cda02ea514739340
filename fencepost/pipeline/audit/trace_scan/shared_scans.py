"""Scans for what more than one rule, the lineage and the comparison of windows ask for; and all."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.acknowledged_batches import (
    are_acknowledged,
    are_in_place,
    packed_details,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.audit.trace_rows import ACKNOWLEDGED
from fencepost.pipeline.audit.trace_scan.scan import NewScan, Stretch


class LogStartScan:
    """Leaves an answer with the highest log start of all."""

    def __init__(self) -> None:
        self._highest = -1

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        starts = pc.fill_null(stretch.incarnation.rows["log_start_offset"], -1).to_numpy()
        if len(starts) and starts.max() > self._highest:
            self._highest = int(starts.max())
            stretch.kept.hold(LogStartScan, int(starts.argmax()))


class WipedReplicaScan:
    """Leaves a Fetch of a follower that does not tell when it has lost its disk."""

    def __init__(self) -> None:
        self._found = False

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        found = np.flatnonzero(stretch.incarnation.has_no_replica_epoch)
        if len(found) and not self._found:
            self._found = True
            stretch.kept.hold(WipedReplicaScan, int(found[0]))


class AcknowledgedScan:
    """Leaves what was acknowledged to acks=all, of the incarnation that the logs are of: a row for
    all of a stretch whose batches are in place, and each of the others.
    """

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        if not stretch.incarnation.is_last:
            return
        flags = are_acknowledged(stretch.incarnation.rows)
        rows = stretch.incarnation.rows.filter(pa.array(flags))
        in_place = are_in_place(rows)
        flags[flags] = ~in_place
        stretch.kept.keep(flags)
        if in_place.any():
            details = packed_details(rows.filter(pa.array(in_place)))
            stretch.kept.add(ACKNOWLEDGED, details)


SCANS: Final[tuple[NewScan, ...]] = (
    *(LogStartScan, WipedReplicaScan, AcknowledgedScan),
    *(rule.scan for rule in RULES.values() if rule.scan is not None),
)
"""These, and those of rules."""
