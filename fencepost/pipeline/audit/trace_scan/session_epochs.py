"""The leader epochs under which fetch sessions ask (KIP-227, KIP-320).

What a session has said of a partition it does not say again: a request that says no epoch is asked
under the one that its session said last.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array
from fencepost.pipeline.audit.timeline import PartitionTimeline, TopicIncarnation

COLUMN: Final = "current_leader_epoch"
NO_EPOCH: Final = -1
_ORDINAL: Final = "ordinal"


def requested_epochs(rows: pa.Table) -> Int64Array:
    """The epoch of each request; `NO_EPOCH` where none was said.

    :param rows: Of one incarnation, by line.
    """
    fetches = _SessionFetches.of(rows)
    order = np.lexsort((rows["number"].to_numpy()[fetches.at], fetches.sessions, fetches.brokers))
    requested: Int64Array = pc.fill_null(rows[COLUMN].cast(pa.int64()), NO_EPOCH).to_numpy().copy()
    ordered = fetches.take(order)
    requested[ordered.at] = ordered.epochs_said(None)
    return requested


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What a session has said last."""

    broker: int
    session: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SessionFetches:
    """Fetches within sessions, as arrays."""

    at: Int64Array
    """Which rows they are."""
    brokers: Int64Array
    sessions: Int64Array
    epochs: Int64Array
    """As the request says; `NO_EPOCH` where it says nothing."""
    is_silent: BoolArray

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Those among some rows, in their order."""
        in_session = pc.and_(pc.is_valid(rows["session_id"]), pc.equal(rows["api"], "Fetch"))
        at = np.flatnonzero(pc.fill_null(in_session, fill_value=False).to_numpy())
        fetches = rows.select(["broker", "session_id", COLUMN]).take(pa.array(at))
        return cls(
            at=at,
            brokers=pc.fill_null(fetches["broker"].cast(pa.int64()), -1).to_numpy(),
            sessions=fetches["session_id"].cast(pa.int64()).to_numpy(),
            epochs=pc.fill_null(fetches[COLUMN].cast(pa.int64()), NO_EPOCH).to_numpy(),
            is_silent=pc.is_null(fetches[COLUMN]).to_numpy(),
        )

    def take(self, order: Int64Array) -> Self:
        return type(self)(
            at=self.at[order],
            brokers=self.brokers[order],
            sessions=self.sessions[order],
            epochs=self.epochs[order],
            is_silent=self.is_silent[order],
        )

    def epochs_said(self, before: _Said | None) -> Int64Array:
        """The epoch of each: its own, or the one that its session said before.

        They are by broker, session and number.

        :param before: What was said last, before the first of them.
        """
        own = np.arange(len(self.at))
        begins = changes(self.brokers) | changes(self.sessions)
        said = np.maximum.accumulate(np.where(self.is_silent, NO_EPOCH, own))
        known = said >= np.maximum.accumulate(np.where(begins, own, 0))
        epochs = np.where(known, self.epochs[said], NO_EPOCH) if len(own) else self.epochs
        if before is not None:
            goes_on = (self.brokers == before.broker) & (self.sessions == before.session)
            epochs = np.where(goes_on & ~known, before.epoch, epochs)
        found: Int64Array = epochs
        return found


def changes(column: Int64Array) -> BoolArray:
    """Of each whether it is another than the one before it."""
    found: BoolArray = np.append(True, column[1:] != column[:-1])[: len(column)]
    return found


class SessionEpochs:
    """Fills in what sessions do not say again, in exchanges that come stretch by stretch.

    They are by broker, session and number.
    """

    def __init__(self, timeline: PartitionTimeline) -> None:
        self._timeline = timeline
        self._before: dict[int, _Said] = {}
        """Of each incarnation, by its number."""

    def next(self, exchanges: pa.Table) -> pa.Table:
        """The same exchanges, each with its epoch."""
        epochs = pc.fill_null(exchanges[COLUMN].cast(pa.int64()), NO_EPOCH).to_numpy().copy()
        is_known = pc.is_valid(exchanges[COLUMN]).to_numpy().copy()
        numbered = exchanges.append_column(_ORDINAL, pa.array(np.arange(exchanges.num_rows)))
        for number, incarnation in enumerate(self._timeline.incarnations(numbered)):
            at, said = self._of_incarnation(number, incarnation)
            epochs[at], is_known[at] = said, True
        column = pa.array(epochs, exchanges[COLUMN].type, mask=~is_known)
        return exchanges.set_column(exchanges.schema.get_field_index(COLUMN), COLUMN, column)

    def end(self) -> list[pa.Table]:
        """Nothing is left to come."""
        return []

    def _of_incarnation(
        self, number: int, incarnation: TopicIncarnation
    ) -> tuple[Int64Array, Int64Array]:
        columns = ("api", "broker", "session_id", COLUMN, _ORDINAL)
        rows = incarnation.succeeded("Fetch", columns=columns)
        fetches = _SessionFetches.of(rows)
        epochs = fetches.epochs_said(self._before.get(number))
        if len(epochs):
            self._before[number] = _Said(
                broker=int(fetches.brokers[-1]),
                session=int(fetches.sessions[-1]),
                epoch=int(epochs[-1]),
            )
        return rows[_ORDINAL].to_numpy()[fetches.at], epochs
