"""The faults that are set in a cluster: one list, in the order in which they are tried."""

import random
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.outcomes import HANG_UP, BlockingResponse
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.faults.leader_epoch_history import LeaderEpochHistory
from fencepost.broker.faults.rules import Corrupt, FaultRule
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.faults.matching import Matcher
    from fencepost.broker.handlers.context import Context


class Fault:
    """A rule that is set, and what it has done."""

    __slots__ = ("hits", "id", "matches", "rule", "skipped")

    def __init__(self, number: int, rule: FaultRule, fits: "Matcher") -> None:
        self.id = number
        self.rule = rule
        self.matches = fits
        self.hits = 0
        self.skipped = 0
        """Requests that fit, up to ``rule.after``."""

    @property
    def left(self) -> int | None:
        """Requests that it will hit yet, at most; None is no end."""
        return None if self.rule.count is None else self.rule.count - self.hits

    @property
    def waits_for_records(self) -> bool:
        """Whether only an answer tells if it hits: a Fetch without records can't be corrupted."""
        return isinstance(self.rule.action, Corrupt) and self.rule.api.name == "fetch"


class FaultRegistry:
    """Rules, their hits, and the answers that they hold back.

    :param seed: What probabilities are drawn from; after a reset they come in the same order.
    """

    def __init__(self, scheduler: Scheduler, events: Events, seed: int) -> None:
        self.active: tuple[Fault, ...] = ()
        """Those that may hit yet, in order. Empty: there is nothing to look at."""
        self.blocking_responses: dict[BlockingResponse, int] = {}
        """Answers that hold a connection up, and the broker that owes them."""
        self.leader_epoch_history = LeaderEpochHistory()
        self._scheduler = scheduler
        self._events = events
        self._seed = seed
        self._rng = self._new_rng()
        self._numbers = count(1)
        self._faults: dict[int, Fault] = {}
        self._queue: dict[Timer, int] = {}
        """When delayed requests are carried out, and by which broker."""

    # -- rules ----------------------------------------------------------------------------------

    def add(self, rule: FaultRule) -> Fault:
        """Set a fault, tried after those that there are.

        :raises ControllerError: INVALID_REQUEST when no request could ever meet it.
        """
        # Imports are late: few clusters ever see a fault, and all start. What takes part when a
        # request is hit comes now, so that no request waits for it.
        from fencepost.broker.faults import corruption, interceptor, partial_refusal, stale_metadata  # noqa: F401  # as just said
        from fencepost.broker.faults.matching import matcher_of
        from fencepost.broker.faults.rule_validation import validate_rule

        validate_rule(rule)
        fault = Fault(next(self._numbers), rule, matcher_of(rule))
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
        """Take a fault back. Requests that it has hit go on as they are.

        :raises ControllerError: RESOURCE_NOT_FOUND when there is none.
        """
        fault = self.get(number)
        del self._faults[number]
        self._update_active()
        self._emit(Kind.FAULT_REMOVED, fault, broker=fault.rule.broker, hits=fault.hits)
        return fault

    def remove_all(self) -> None:
        """Take every fault back."""
        for number in tuple(self._faults):
            self.remove(number)

    def reset(self) -> None:
        """No faults, nothing held back, the same chances again."""
        self._faults.clear()
        self._update_active()
        self._rng = self._new_rng()
        self._cancel(lambda _broker_id: True)

    def on_broker_down(self, broker_id: int) -> None:
        """A broker goes down: what lies in its queue is not carried out, nor answered."""
        self._cancel(lambda owner: owner == broker_id)

    # -- hits -----------------------------------------------------------------------------------

    def find(self, ctx: "Context", api_key: int, request: object) -> Fault | None:
        """The first fault that hits a request; its hit is counted, unless the answer decides."""
        for fault in self.active:
            rule = fault.rule
            if rule.api.key == api_key and fault.matches(ctx, request):
                if fault.waits_for_records:
                    return fault
                if self.try_hit(fault, ctx):
                    return fault
        return None

    def try_hit(self, fault: Fault, ctx: "Context") -> bool:
        """Whether a fault hits a request that fits; counted where it does."""
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

    # -- time -----------------------------------------------------------------------------------

    def block_response(self, broker_id: int) -> BlockingResponse:
        """An answer that a broker owes, and that holds a connection up."""
        return BlockingResponse(self.blocking_responses, broker_id)

    def run_after(self, broker_id: int, after_ms: int, run: Callable[[], None]) -> None:
        """Run something of a broker's later; not, if it goes down or the cluster is reset."""

        def due() -> None:
            del self._queue[timer]
            run()

        timer = self._scheduler.at(self._scheduler.now_ms() + after_ms, due)
        self._queue[timer] = broker_id

    def _cancel(self, concerns: Callable[[int], bool]) -> None:
        for timer in [timer for timer, owner in self._queue.items() if concerns(owner)]:
            timer.cancel()
            del self._queue[timer]
        for held in [held for held, owner in self.blocking_responses.items() if concerns(owner)]:
            held.complete(HANG_UP)

    # -- inside ---------------------------------------------------------------------------------

    def _update_active(self) -> None:
        self.active = tuple(fault for fault in self._faults.values() if fault.left != 0)

    def _new_rng(self) -> random.Random:
        return random.Random(f"faults {self._seed}")

    def _emit(self, kind: Kind, fault: Fault, *, broker: int | None, **details: object) -> None:
        from fencepost.broker.faults.rules import action_to_dict

        rule = fault.rule
        self._events.emit(
            kind,
            topic=rule.topic,
            partition=rule.partition,
            broker=broker,
            id=fault.id,
            api=rule.api.title,
            action=action_to_dict(rule.action),
            **details,
        )
