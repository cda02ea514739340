"""Faults of the remote tier: operations of the object store that fail or take time.

They apply between the brokers and the store, for the whole cluster. As in Kafka they are faults of
segments: ``upload``, ``fetch`` and ``delete`` are the operations of its RemoteStorageManager on a
segment, and each meets a fault once, however many objects the segment has. ``list``, which is no
operation there, is how a task learns what the tier has: while it fails, a new leader does not know
its highest tiered offset.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from itertools import count

from msgspec import Struct

from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import (
    DoneCallback,
    ListCallback,
    ObjectKind,
    ObjectStore,
    ReadCallback,
    TierError,
)


class RemoteOperation(StrEnum):
    """An operation that a fault can hit."""

    UPLOAD = "upload"
    """A segment's records are copied."""
    FETCH = "fetch"
    """Any of a segment's objects but its metadata is read."""
    DELETE = "delete"
    """A segment's objects are deleted."""
    LIST = "list"
    """A task lists what the tier has of its partition."""


class RemoteFaultRule(Struct, frozen=True, kw_only=True):
    """What happens to an operation.

    :ivar error: Why it fails; None: it succeeds.
    :ivar delay_ms: The delay before it fails or begins; None: no delay.
    :ivar count: The operations that it hits; None is no end.
    """

    operation: RemoteOperation
    error: str | None = None
    delay_ms: int | None = None
    count: int | None = 1


class RemoteFault:
    """A rule that is set, and its hits."""

    __slots__ = ("hits", "id", "rule")

    def __init__(self, number: int, rule: RemoteFaultRule) -> None:
        self.id = number
        self.rule = rule
        self.hits = 0

    @property
    def left(self) -> int | None:
        """The operations that it can still hit; None is no end."""
        return None if self.rule.count is None else self.rule.count - self.hits


class RemoteFaultRegistry:
    """The rules that are set, in the order in which they are tried; the first that matches hits."""

    def __init__(self, scheduler: Scheduler, events: Events) -> None:
        self._scheduler = scheduler
        self._events = events
        self._faults: dict[int, RemoteFault] = {}
        self._ids = count(1)

    def all(self) -> tuple[RemoteFault, ...]:
        """Every rule that is set, also those that are over, oldest first."""
        return tuple(self._faults.values())

    def get(self, number: int) -> RemoteFault | None:
        """One by its id."""
        return self._faults.get(number)

    def add(self, rule: RemoteFaultRule) -> RemoteFault:
        """Set a rule."""
        fault = RemoteFault(next(self._ids), rule)
        self._faults[fault.id] = fault
        self._emit(Kind.TIER_FAULT_ADDED, fault)
        return fault

    def remove(self, number: int) -> bool:
        """Remove a rule; False where none has this id. Operations that are delayed stay delayed."""
        fault = self._faults.pop(number, None)
        if fault is None:
            return False
        self._emit(Kind.TIER_FAULT_REMOVED, fault, hits=fault.hits)
        return True

    def reset(self) -> None:
        """Remove all rules, without events. Ids go on rising."""
        self._faults.clear()

    def intercept(
        self,
        operation: RemoteOperation,
        key: str,
        do: Callable[[], None],
        fail: Callable[[TierError], None],
    ) -> None:
        """Carry an operation out, or let it fail, now or later, as the rules say.

        :param key: The object, or the first of several.
        """
        fault = next((f for f in self._faults.values() if _matches(f, operation)), None)
        if fault is None:
            do()
            return
        fault.hits += 1
        self._emit(Kind.TIER_FAULT_HIT, fault, key=key)
        rule = fault.rule
        then = do if rule.error is None else partial(fail, TierError(key, rule.error))
        if rule.delay_ms:
            self._scheduler.at(self._scheduler.now_ms() + rule.delay_ms, then)
        else:
            self._scheduler.soon(then)

    def _emit(self, kind: Kind, fault: RemoteFault, **details: object) -> None:
        rule = fault.rule
        self._events.emit(
            kind,
            topic=None,
            partition=None,
            broker=None,
            id=fault.id,
            operation=rule.operation.value,
            error=rule.error,
            delay_ms=rule.delay_ms,
            **details,
        )


def _matches(fault: RemoteFault, operation: RemoteOperation) -> bool:
    return fault.rule.operation is operation and fault.left != 0


class FaultyObjectStore:
    """An `ObjectStore` whose operations meet faults first."""

    def __init__(self, store: ObjectStore, faults: RemoteFaultRegistry) -> None:
        self._store = store
        self._faults = faults

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object; a segment's records meet faults of ``upload``."""
        do = partial(self._store.put, key, buffers, done)
        if key.endswith(ObjectKind.LOG):
            self._faults.intercept(RemoteOperation.UPLOAD, key, do, done)
        else:
            do()

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object; all but metadata meet faults of ``fetch``."""
        do = partial(self._store.get, key, start, end, done)
        if key.endswith(ObjectKind.METADATA):
            do()
        else:
            self._faults.intercept(RemoteOperation.FETCH, key, do, done)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects; where there are more than metadata they meet faults of ``delete``."""
        do = partial(self._store.delete, keys, done)
        data = [key for key in keys if not key.endswith(ObjectKind.METADATA)]
        if data:
            self._faults.intercept(RemoteOperation.DELETE, data[0], do, done)
        else:
            do()

    def list(self, prefix: str, done: ListCallback) -> None:
        """List keys, which meets faults of ``list``."""
        self._faults.intercept(
            RemoteOperation.LIST, prefix, partial(self._store.list, prefix, done), done
        )
