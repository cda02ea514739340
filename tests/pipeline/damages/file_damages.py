"""Damages to the files beside the segments: checkpoints and indexes."""

from __future__ import annotations

import shutil
from typing import Final

from fencepost.pipeline.audit.rule import Severity
from fencepost.storage.formats import file_names
from tests.pipeline.audit import damage
from tests.pipeline.damages.model import Damage
from tests.pipeline.damages.written import END

DAMAGES: Final[tuple[Damage, ...]] = (
    # Leader epochs.
    Damage(
        name="epoch-raised",
        do=lambda to: damage.give_epoch(to.segments()[0], 1, 7),
        rule="monotonic-epochs",
        cause="a batch of leader epoch 0 follows one of 7",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="last-epoch-raised",
        do=lambda to: damage.give_epoch(to.segments()[-1], -1, 7),
        rule="monotonic-epochs",
        cause="a batch of leader epoch 7, where the leader-epoch-checkpoint says epoch 0",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-not-there",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).unlink(),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is not there, or is none",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-empty",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n0\n"),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is empty",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-garbled",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n1\nx y\n"),
        rule="monotonic-epochs",
        cause="the leader-epoch-checkpoint is not there, or is none",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epoch-beyond-the-end",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n2\n0 0\n5 4500\n"),
        rule="monotonic-epochs",
        cause=f"the leader-epoch-checkpoint lets epoch 5 begin at 4500, and the log ends at {END}",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="epochs-in-disorder",
        do=lambda to: (to.log / file_names.LEADER_EPOCHS).write_text("0\n2\n3 0\n1 12\n"),
        rule="monotonic-epochs",
        cause="in the leader-epoch-checkpoint epoch 1 from offset 12 on follows epoch 3 from 0 on",
        alone=Severity.DAMAGE,
    ),
    # Checkpoints of the broker.
    Damage(
        name="log-start-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.LOG_STARTS, lambda _: 99999),
        rule="log-start-in-log",
        cause=f"the log-start-offset-checkpoint says 99999, and the log ends at {END}",
        alone=Severity.DAMAGE,
    ),
    Damage(
        name="high-watermark-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.HIGH_WATERMARKS, lambda _: 4500),
        rule="torn-tail",
        cause=f"the log ends at {END}, and its high watermark was 4500",
        beside_others=Severity.LOSS,
    ),
    Damage(
        name="recovery-point-beyond-the-end",
        do=lambda to: to.checkpoint(file_names.RECOVERY_POINTS, lambda _: 4500),
        rule="torn-tail",
        cause=f"the log ends at {END}, and it was durable up to 4500",
        beside_others=Severity.LOSS,
    ),
    # Indexes.
    Damage(
        name="index-entry",
        do=lambda to: damage.flip(to.segments(".index")[0], 5),
        rule="true-indexes",
        cause="offset index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="time-index-entry",
        do=lambda to: damage.flip(to.segments(".timeindex")[0], 5),
        rule="true-indexes",
        cause="time index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="index-gone",
        do=lambda to: to.segments(".index")[0].unlink(),
        rule="true-indexes",
        cause="index is not there",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="time-index-gone",
        do=lambda to: to.segments(".timeindex")[0].unlink(),
        rule="true-indexes",
        cause="timeindex is not there",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="index-of-zeros",
        do=lambda to: to.segments(".index")[1].write_bytes(bytes(80)),
        rule="true-indexes",
        cause="offset index: ",
        alone=Severity.REBUILT,
        beside_others=Severity.REBUILT,
    ),
    Damage(
        name="records-of-another-partition",
        do=lambda to: shutil.copyfile(
            to.written.log_dir(1) / "healthy-1-0" / to.segments()[1].name, to.segments()[1]
        ),
        rule="replicas-agree",
        cause="at offset 12 brokers 1 and 2 have different batches of leader epoch 0",
        alone=Severity.DAMAGE,
        replicas=(3,),
    ),
)
