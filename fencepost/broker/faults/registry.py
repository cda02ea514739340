"""The faults that are set in a cluster: one list, in the order in which they are tried."""

import random
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.faults.interceptor import Handle, Interception, PendingOutcomes
from fencepost.broker.metadata.image import LeaderEpochHistory
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.faults.kinds import Action
    from fencepost.broker.faults.matching import Matcher
    from fencepost.broker.faults.rules import FaultRule
    from fencepost.broker.handlers.context import Context


class Fault:
    """A rule that is set, and its hits.

    :param matchers: Check whether a request matches, by the keys of the APIs that it can hit.
    """

    __slots__ = ("hits", "id", "matchers", "rule", "skipped", "target")

    def __init__(self, number: int, rule: "FaultRule", matchers: Mapping[int, "Matcher"]) -> None:
        self.id = number
        self.rule = rule
        self.target = rule.target
        self.matchers = matchers
        self.hits = 0
        self.skipped = 0
        """What matched, up to ``rule.after``."""

    @property
    def left(self) -> int | None:
        """How many hits it can still have; None is no end."""
        most = self.rule.max_hits
        return None if most is None else most - self.hits

    @property
    def next_action(self) -> "Action":
        """The action of its next hit."""
        steps = self.rule.steps
        return steps[self.hits % len(steps)]

    def is_decided_by_response(self, api: Api) -> bool:
        """Whether only the response tells if a request is hit."""
        if self.rule.record is not None and api.name == "fetch":
            return True
        return self.next_action.is_decided_by_response(api)


class FaultRegistry:
    """The faults of a cluster, their hits, and what they delay.

    :param seed: Of the random numbers; after a reset the same ones are drawn again.
    """

    def __init__(self, scheduler: Scheduler, events: Events, seed: int) -> None:
        self.active: tuple[Fault, ...] = ()
        """The faults that can still hit requests, in order; empty where none is to be checked."""
        self.pending = PendingOutcomes(scheduler)
        self.leader_epoch_history = LeaderEpochHistory()
        self._events = events
        self._seed = seed
        self._rng = self._new_rng()
        self._numbers = count(1)
        self._faults: dict[int, Fault] = {}

    # -- rules ----------------------------------------------------------------------------------

    def add(self, rule: "FaultRule") -> Fault:
        """Set a fault, which is tried after those that there are.

        :raises ControllerError: INVALID_REQUEST when no request could ever meet it.
        """
        # Few clusters ever have a fault, and all start: what only a fault needs is imported now,
        # also what a hit needs, so that no request waits for an import.
        from fencepost.broker.faults import fetched_records, partial_refusal, wrong_responses  # noqa: F401  # as just said
        from fencepost.broker.faults.matching import matchers_of
        from fencepost.broker.faults.rules import validated_apis

        fault = Fault(
            next(self._numbers), rule, matchers_of(rule, rule.steps, validated_apis(rule))
        )
        self._faults[fault.id] = fault
        self._update_active()
        self._emit_rule(Kind.FAULT_ADDED, fault)
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
        self._emit_rule(Kind.FAULT_REMOVED, fault, hits=fault.hits)
        return fault

    def remove_all(self) -> None:
        """Remove every fault."""
        removed = self.all()
        self._faults.clear()
        self._update_active()
        for fault in removed:
            self._emit_rule(Kind.FAULT_REMOVED, fault, hits=fault.hits)

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
        observers: list[Interception] = []
        answer: object = None
        for fault in self.active:
            matches = fault.matchers.get(api.key)
            if matches is None or not matches(ctx, request):
                continue
            action, is_decided_late = fault.next_action, fault.is_decided_by_response(api)
            if not is_decided_late and not self._try_hit(fault, action, api, ctx):
                continue
            hit = self._interception(fault, action, api, ctx, request, handle)
            if not action.only_counts:
                answer = _intercept(hit, action)
                break
            if is_decided_late:
                observers.append(hit)
        else:
            answer = handle(api, ctx, request)
        return _observe(observers, answer)

    def accept(self, broker_id: int) -> Fault | None:
        """The fault that hits a new connection of a broker; None where it is served."""
        if not self._faults:
            return None
        from fencepost.broker.faults.kinds import Target

        for fault in self._faults.values():
            rule = fault.rule
            if fault.target is not Target.CONNECTIONS or rule.broker not in (None, broker_id):
                continue
            action = fault.next_action
            if fault.left != 0 and self._try_hit_connection(fault, action, broker_id):
                return fault if action.target is Target.CONNECTIONS else None
        return None

    def refuses_connections(self, broker_id: int) -> bool:
        """Whether a broker's port is to refuse connections."""
        if not self._faults:
            return False
        from fencepost.broker.faults.kinds import Target

        return any(
            fault.target is Target.PORTS and fault.rule.broker in (None, broker_id)
            for fault in self._faults.values()
        )

    def is_set(self, fault: Fault) -> bool:
        """Whether a fault has not been removed."""
        return self._faults.get(fault.id) is fault

    def _interception(
        self,
        fault: Fault,
        action: "Action",
        api: Api,
        ctx: "Context",
        request: object,
        handle: Handle,
    ) -> Interception:
        return Interception(
            selectors=fault.rule,
            api=api,
            ctx=ctx,
            request=request,
            handle=handle,
            pending=self.pending,
            leader_epoch_history=self.leader_epoch_history,
            try_hit=lambda: self._try_hit(fault, action, api, ctx),
        )

    def _try_hit(self, fault: Fault, action: "Action", api: Api, ctx: "Context") -> bool:
        """Whether a fault hits a request that matches; a hit is counted.

        :param action: What it would meet; another request may have met that meanwhile.
        """
        if fault not in self.active or fault.next_action is not action or not self._draw(fault):
            return False
        self._count_hit(fault, action, api.title, ctx.broker.broker_id, ctx.client_id)
        return True

    def _try_hit_connection(self, fault: Fault, action: "Action", broker_id: int) -> bool:
        if not self._draw(fault):
            return False
        self._count_hit(fault, action, fault.rule.api.to_json(), broker_id, None)
        return True

    def _draw(self, fault: Fault) -> bool:
        """Whether the triggers of a fault allow a hit."""
        rule = fault.rule
        if fault.skipped < rule.after:
            fault.skipped += 1
            return False
        return rule.probability == 1 or self._rng.random() < rule.probability

    def _count_hit(
        self, fault: Fault, action: "Action", api: object, broker: int, client_id: str | None
    ) -> None:
        fault.hits += 1
        if fault.left == 0:
            self._update_active()
        self._emit(
            Kind.FAULT_HIT,
            fault,
            broker=broker,
            api=api,
            action=action.to_json(),
            client_id=client_id,
        )

    def _update_active(self) -> None:
        self.active = ()
        if not self._faults:
            return
        from fencepost.broker.faults.kinds import Target

        self.active = tuple(
            fault
            for fault in self._faults.values()
            if fault.left != 0 and fault.target is Target.REQUESTS
        )

    def _new_rng(self) -> random.Random:
        return random.Random(f"faults {self._seed}")

    def _emit_rule(self, kind: Kind, fault: Fault, **details: object) -> None:
        """An event of a rule, and not of one of its hits."""
        written = fault.rule.to_json()
        what = "action" if fault.rule.sequence is None else "sequence"
        self._emit(
            kind,
            fault,
            broker=fault.rule.broker,
            api=written["api"],
            **{what: written[what]},
            **details,
        )

    def _emit(self, kind: Kind, fault: Fault, *, broker: int | None, **details: object) -> None:
        rule = fault.rule
        self._events.emit(
            kind, topic=rule.topic, partition=rule.partition, broker=broker, id=fault.id, **details
        )


def _intercept(hit: Interception, action: "Action") -> object:
    """Carry out a request that is hit, or that may be."""
    if hit.selectors.record is None:
        return action.intercept(hit)
    # Late: few faults select records.
    from fencepost.broker.faults import fetched_records
    from fencepost.broker.faults.matching import produced_partitions

    if hit.api.name == "fetch":
        return fetched_records.intercept(hit, action)
    partitions = produced_partitions(hit.selectors, hit.ctx, hit.request)
    return action.intercept(replace(hit, partitions=partitions))


def _observe(observers: Sequence[Interception], answer: object) -> object:
    """Let those count that must see the response."""
    if observers:
        from fencepost.broker.faults import fetched_records

        for hit in observers:
            answer = fetched_records.observe(hit, answer)
    return answer
