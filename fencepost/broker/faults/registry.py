"""The faults that are set in a cluster: one list, in the order in which they are tried."""

import random
from itertools import count
from typing import TYPE_CHECKING

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.faults.interceptor import Handle, Interception, PendingOutcomes
from fencepost.broker.faults.rules import FaultRule, validate_rule
from fencepost.broker.metadata.image import LeaderEpochHistory
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.faults.matching import Matcher
    from fencepost.broker.handlers.context import Context


class Fault:
    """A rule that is set, and its hits."""

    __slots__ = ("hits", "id", "matches", "rule", "skipped")

    def __init__(self, number: int, rule: FaultRule, matches: "Matcher") -> None:
        self.id = number
        self.rule = rule
        self.matches = matches
        self.hits = 0
        self.skipped = 0
        """Requests that matched, up to ``rule.after``."""

    @property
    def left(self) -> int | None:
        """The requests that it can still hit; None is no end."""
        return None if self.rule.count is None else self.rule.count - self.hits


class FaultRegistry:
    """The faults of a cluster, their hits, and what they delay.

    :param seed: Of the random numbers; after a reset the same ones are drawn again.
    """

    def __init__(self, scheduler: Scheduler, events: Events, seed: int) -> None:
        self.active: tuple[Fault, ...] = ()
        """The faults that can still hit, in order; empty where no request is to be checked."""
        self.pending = PendingOutcomes(scheduler)
        self.leader_epoch_history = LeaderEpochHistory()
        self._events = events
        self._seed = seed
        self._rng = self._new_rng()
        self._numbers = count(1)
        self._faults: dict[int, Fault] = {}

    # -- rules ----------------------------------------------------------------------------------

    def add(self, rule: FaultRule) -> Fault:
        """Set a fault, which is tried after those that there are.

        :raises ControllerError: INVALID_REQUEST when no request could ever meet it.
        """
        # Few clusters ever have a fault, and all start: what only a fault needs is imported now,
        # also what a hit needs, so that no request waits for an import.
        from fencepost.broker.faults import partial_refusal, wrong_responses  # noqa: F401  # as just said
        from fencepost.broker.faults.matching import matcher_of

        validate_rule(rule)
        matches = matcher_of(rule, first_version=rule.action.first_version(rule.api))
        fault = Fault(next(self._numbers), rule, matches)
        self._faults[fault.id] = fault
        self._update_active()
        self._emit(Kind.FAULT_ADDED, fault, broker=rule.broker)
        return fault

    def all(self) -> tuple[Fault, ...]:
        """Every fault that is set, also those that are over, in order."""
        return tuple(self._faults.values())

    def get(self, number: int) -> Fault:
        """A fault by its id.

        :raises ControllerError: RESOURCE_NOT_FOUND when there is none.
        """
        fault = self._faults.get(number)
        if fault is None:
            raise ControllerError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no fault {number}")
        return fault

    def remove(self, number: int) -> Fault:
        """Remove a fault. It does not change requests that it has hit.

        :raises ControllerError: RESOURCE_NOT_FOUND when there is none.
        """
        fault = self.get(number)
        del self._faults[number]
        self._update_active()
        self._emit(Kind.FAULT_REMOVED, fault, broker=fault.rule.broker, hits=fault.hits)
        return fault

    def remove_all(self) -> None:
        """Remove every fault."""
        for number in tuple(self._faults):
            self.remove(number)

    def reset(self) -> None:
        """Remove every fault, cancel what is pending, and draw the same random numbers again."""
        self._faults.clear()
        self._update_active()
        self._rng = self._new_rng()
        self.pending.cancel()

    def on_broker_down(self, broker_id: int) -> None:
        """A broker goes down: what is in its queue is neither carried out nor answered."""
        self.pending.cancel(broker_id)

    # -- hits -----------------------------------------------------------------------------------

    def intercept(self, api: Api, ctx: "Context", request: object, handle: Handle) -> object:
        """Answer a request as the first fault that hits it says, else as the handlers do.

        :param handle: The broker's handlers.
        """
        fault = self._find(ctx, api, request)
        if fault is None:
            return handle(api, ctx, request)
        return fault.rule.action.intercept(
            Interception(
                selectors=fault.rule,
                api=api,
                ctx=ctx,
                request=request,
                handle=handle,
                pending=self.pending,
                leader_epoch_history=self.leader_epoch_history,
                try_hit=lambda: self._try_hit(fault, ctx),
            )
        )

    def _find(self, ctx: "Context", api: Api, request: object) -> Fault | None:
        """The first fault that hits a request; the hit counts now unless the response decides."""
        for fault in self.active:
            if fault.rule.api.key != api.key or not fault.matches(ctx, request):
                continue
            if fault.rule.action.is_decided_by_response(api) or self._try_hit(fault, ctx):
                return fault
        return None

    def _try_hit(self, fault: Fault, ctx: "Context") -> bool:
        """Whether a fault hits a request that matches; a hit is counted."""
        rule = fault.rule
        if fault not in self.active:
            return False
        if fault.skipped < rule.after:
            fault.skipped += 1
            return False
        if rule.probability < 1 and self._rng.random() >= rule.probability:
            return False
        fault.hits += 1
        if fault.left == 0:
            self._update_active()
        self._emit(Kind.FAULT_HIT, fault, broker=ctx.broker.broker_id, client_id=ctx.client_id)
        return True

    def _update_active(self) -> None:
        self.active = tuple(fault for fault in self._faults.values() if fault.left != 0)

    def _new_rng(self) -> random.Random:
        return random.Random(f"faults {self._seed}")

    def _emit(self, kind: Kind, fault: Fault, *, broker: int | None, **details: object) -> None:
        rule = fault.rule
        self._events.emit(
            kind,
            topic=rule.topic,
            partition=rule.partition,
            broker=broker,
            id=fault.id,
            api=rule.api.title,
            action=rule.action.to_json(),
            **details,
        )
