"""A scenario played on a cluster, step by step, until one of them is not as expected.

Scenarios run each on a cluster of its own, or one after the other on a cluster that is there. The
cluster's events are recorded meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import ValidationError

from fencepost.broker.core.events import Kind
from fencepost.scenario.actions.context import (
    ActionBody,
    ControlClient,
    InvalidAction,
    ScenarioClients,
)
from fencepost.scenario.actions.executor import execute
from fencepost.scenario.assertions import ExpectationChecker, StepResult, call_verb
from fencepost.scenario.cluster_requirements import check_requirements
from fencepost.scenario.compare import Mismatch
from fencepost.scenario.document import Data, RangeTooLong, UnresolvedReference, resolve
from fencepost.scenario.model import (
    ActionCall,
    Await,
    Expectation,
    Listener,
    Parallel,
    Scenario,
    ScenarioOutcome,
    Step,
    StepOutcome,
    VerbCall,
)
from fencepost.verbs.answers.cluster import EventState, ExchangeState
from fencepost.verbs.catalogue import VERBS, Shape
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.models import problem
from fencepost.verbs.remote import Refused, VerbError
from fencepost.verbs.remote_async import AsyncRemote
from fencepost.verbs.serving import CannotServe, start


class EventRecorder:
    """The events of a cluster, from the reset on with which it begins.

    :param verbs: Of the cluster.
    """

    def __init__(self, verbs: AsyncVerbs) -> None:
        self._verbs = verbs
        self._events: list[EventState] = []
        self._arrived = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reset the cluster, and hear of it and of all that follows.

        :raises VerbError: When the cluster refuses, or there is none.
        """
        stream = await self._verbs.remote.open_stream(VERBS["events"], EventState, {}, {})
        self._listening = asyncio.create_task(self._listen(stream))
        await self._verbs.reset()

    async def events_since(self, since: int | None, within_s: float) -> Data:
        """What happened, in order; one event at least, unless none comes in time.

        :param since: Only events of a higher number; None is all from the reset on.
        """
        deadline = asyncio.get_running_loop().time() + within_s
        while not (found := [e for e in self._events if since is None or e.number > since]):
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await self._wait(left_s)
        return [event.model_dump(mode="json") for event in found]

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self, stream: AsyncGenerator[EventState, None]) -> None:
        async with aclosing(stream):
            async for event in stream:
                # What a reset does away with is told before it, and of no scenario's concern.
                if self._events or event.kind == Kind.RESET:
                    self._events.append(event)
                    self._arrived.set()

    async def _wait(self, at_most_s: float) -> None:
        """Wait for an event that is not there yet, or for the end of the stream."""
        self._arrived.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), at_most_s)


RETRY_INTERVAL_S: Final = 0.01
"""Between two attempts of ``until``."""
_SHOWN_EXCHANGES: Final = 16
_MEMBER_ID_REQUIRED_SINCE: Final = 4
"""The version of JoinGroup from which on a new member is given an id before it joins (KIP-394)."""


async def play(
    scenario: Scenario, control: str, listener: Listener, *, token: str | None = None
) -> ScenarioOutcome:
    """Play a scenario on a cluster, which is reset first.

    :param control: The URL of its control API.
    :param token: What that needs where other machines can reach it.
    """
    remote = AsyncRemote(control, token=token)
    began = time.perf_counter()
    listener.begins(scenario)
    steps: tuple[StepOutcome, ...] = ()
    journal: tuple[ExchangeState, ...] = ()
    problem = None
    try:
        verbs = AsyncVerbs(remote)
        try:
            steps = await _play(scenario, remote, verbs, listener)
            if not all(each.passed for each in steps):
                journal = tuple(await verbs.trace(source="all", limit=_SHOWN_EXCHANGES))
        except VerbError as error:
            problem = str(error)
    finally:
        remote.close()
    outcome = ScenarioOutcome(
        scenario=scenario,
        steps=steps,
        elapsed_ms=_ms_since(began),
        problem=problem,
        journal=journal,
    )
    listener.ended(outcome)
    return outcome


async def _play(
    scenario: Scenario, remote: AsyncRemote, verbs: AsyncVerbs, listener: Listener
) -> tuple[StepOutcome, ...]:
    recorder = EventRecorder(verbs)
    try:
        if scenario.needs_events:
            await recorder.start()
        else:
            await verbs.reset()
        return await _play_steps(scenario, remote, verbs, listener, recorder)
    finally:
        await recorder.close()


async def _play_steps(
    scenario: Scenario,
    remote: AsyncRemote,
    verbs: AsyncVerbs,
    listener: Listener,
    recorder: EventRecorder,
) -> tuple[StepOutcome, ...]:
    for topic in scenario.topics:
        await call_verb(remote, "create_topic", topic.model_dump(exclude_unset=True))
    control = ControlClient(verbs)
    addresses = await control.addresses()
    bootstrap = ",".join(f"{host}:{port}" for host, port in addresses.values())
    clients = ScenarioClients(control, bootstrap, addresses)
    player = _Player(remote, verbs, clients, recorder)
    outcomes: list[StepOutcome] = []
    try:
        for number, step in enumerate(scenario.steps, start=1):
            listener.step_begins(step, number, len(scenario.steps))
            outcome = await player.step(step)
            outcomes.append(outcome)
            listener.step_ended(outcome)
            if not outcome.passed:
                break
    finally:
        await player.close()
    return tuple(outcomes)


class _Player:
    """Plays the steps of one scenario."""

    def __init__(
        self,
        remote: AsyncRemote,
        verbs: AsyncVerbs,
        clients: ScenarioClients,
        recorder: EventRecorder,
    ) -> None:
        self._remote = remote
        self._verbs = verbs
        self._clients = clients
        self._recorder = recorder
        self._answers: dict[str, Data] = {}
        self._marks: dict[str, int] = {}
        self._background: dict[str, asyncio.Task[Data]] = {}
        self._checker = ExpectationChecker(remote, self._answers, self._marks)
        self._last = StepResult()

    async def close(self) -> None:
        """End what goes on in the background, and all clients."""
        for task in self._background.values():
            task.cancel()
        await asyncio.gather(*self._background.values(), return_exceptions=True)
        await self._clients.close()

    async def step(self, step: Step) -> StepOutcome:
        """One step, as often as it says."""
        began = time.perf_counter()
        if step.name is not None:
            self._marks[step.name] = await self._newest_exchange()
        came, mismatches, problem = StepResult(), list[Mismatch](), None
        inner: tuple[StepOutcome, ...] = ()
        try:
            if isinstance(step.do, Parallel):
                done = asyncio.gather(*map(self.step, step.do.steps))
                inner = tuple(await done)
            for _ in range(step.repeat):
                came, mismatches = await self._run_until_expected(step)
                if mismatches:
                    break
        except (UnresolvedReference, InvalidAction, RangeTooLong) as error:
            problem = str(error)
        if step.name is not None:
            self._answers[step.name] = came.answer
        return StepOutcome(
            step=step,
            elapsed_ms=_ms_since(began),
            answer=came.answer,
            mismatches=tuple(mismatches),
            problem=problem,
            inner=inner,
        )

    async def _run_until_expected(self, step: Step) -> tuple[StepResult, list[Mismatch]]:
        deadline = time.monotonic() + step.within_ms / 1000
        while True:
            came = await self._perform(step)
            if step.until is None:
                return came, await self._mismatches(step.expect, came)
            mismatches = await self._mismatches(step.until, came)
            if not mismatches:
                if step.expect is not None:
                    mismatches = await self._mismatches(step.expect, came)
                return came, mismatches
            if time.monotonic() > deadline:
                return came, mismatches
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _mismatches(self, expected: Expectation | None, came: StepResult) -> list[Mismatch]:
        pending = None if expected is None else expected.pending
        is_pending = pending is not None and not self._background[pending].done()
        return await self._checker.mismatches(expected, came, is_pending=is_pending)

    # -- verbs and actions ----------------------------------------------------------------------

    async def _perform(self, step: Step) -> StepResult:
        match step.do:
            case VerbCall():
                came = await self._call_verb(step.do, step.within_ms)
            case ActionCall() if step.background is not None:
                await self._start_background(step.do, step.background, step.within_ms)
                return StepResult()
            case ActionCall():
                came = StepResult(answer=await self._call_action(step.do, None), is_action=True)
            case Await():
                came = await self._await_background(step.do, step.within_ms)
            case Parallel():
                return StepResult()
            case None:
                return StepResult(answer=self._last.answer, refused=None)
        self._last = came
        return came

    async def _call_verb(self, do: VerbCall, within_ms: int) -> StepResult:
        arguments = resolve(do.arguments, self._answers)
        assert isinstance(arguments, dict)
        if do.verb.shape is Shape.STREAM:
            since = arguments.get("since")
            assert since is None or isinstance(since, int)
            return StepResult(answer=await self._recorder.events_since(since, within_ms / 1000))
        try:
            return StepResult(answer=await call_verb(self._remote, do.verb.name, arguments))
        except Refused as refused:
            return StepResult(refused=refused)

    async def _call_action(self, do: ActionCall, background: str | None) -> Data:
        body = self._body(do, background)
        answer = await execute(self._clients, do.action, body)
        plain: Data = answer.model_dump(mode="json")
        return plain

    def _body(self, do: ActionCall, background: str | None) -> ActionBody:
        arguments = resolve(do.arguments, self._answers)
        assert isinstance(arguments, dict)
        if background is not None and "member" not in do.action.request_model.model_fields:
            arguments = {"client": background, **arguments}
        try:
            return do.action.request_model.model_validate(arguments)
        except ValidationError as error:  # a reference stands for a value of another type
            first = error.errors()[0]
            raise InvalidAction(problem(first["loc"], first)) from None

    # -- the background -------------------------------------------------------------------------

    async def _start_background(self, do: ActionCall, name: str, within_ms: int) -> None:
        """Begin an action; done when the broker has its request, or after so long."""
        since = await self._newest_exchange()
        task = asyncio.create_task(self._call_action(do, name))
        self._background[name] = task
        api = do.action.api or do.arguments.get("api")
        given: dict[str, Data] = {"since": since, "api": None if api is None else str(api)}
        deadline = time.monotonic() + within_ms / 1000
        while api is not None and not task.done() and time.monotonic() < deadline:
            if await self._is_in_journal(given, do, name):
                return
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _is_in_journal(self, given: Mapping[str, Data], do: ActionCall, name: str) -> bool:
        """Whether the journal has the request of an action in the background.

        Of a member that has no id yet, the request that counts is the second: the first one is
        answered with an id, unless it is a static member's (KIP-345).
        """
        client = do.arguments.get("client") or do.arguments.get("member") or name
        found = await call_verb(self._remote, "trace", {**given, "client_id": client, "limit": 10})
        assert isinstance(found, list)
        return any(map(_is_request_of_action, found))

    async def _await_background(self, do: Await, within_ms: int) -> StepResult:
        task = self._background[do.name]
        await asyncio.wait([task], timeout=within_ms / 1000)
        if not task.done():
            return StepResult(timeout_reason=f"none within {within_ms} ms")
        return StepResult(answer=task.result(), is_action=True)

    async def _newest_exchange(self) -> int:
        """The number of the journal's last exchange."""
        found = await self._verbs.trace(source="all", limit=1)
        return found[-1].number if found else 0


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


def _is_request_of_action(exchange: Data) -> bool:
    """Whether it is the request of an action, and not one that asks for a member id first."""
    assert isinstance(exchange, dict)
    if exchange["api"] != "JoinGroup":
        return True
    version, request = exchange["version"], exchange["request"]
    assert isinstance(version, int)
    assert isinstance(request, dict)
    is_given_an_id = (
        version >= _MEMBER_ID_REQUIRED_SINCE and request.get("group_instance_id") is None
    )
    return bool(request["member_id"]) or not is_given_an_id


def run(
    scenario: Scenario,
    listener: Listener,
    *,
    against: str | None = None,
    token: str | None = None,
) -> ScenarioOutcome:
    """Run a scenario.

    :param against: The URL of a control API, whose cluster is reset first. None: a process of its
        own serves a cluster as the scenario wants it.
    :param token: What that control API needs where other machines can reach it.
    :raises RequirementsNotMet: When that cluster is another one than the scenario takes.
    :raises VerbError: When it cannot be asked.
    """
    if against is not None:
        asyncio.run(check_requirements(scenario.cluster, against, token=token))
        return asyncio.run(play(scenario, against, listener, token=token))
    with TemporaryDirectory(prefix="fencepost-scenario-") as directory:
        try:
            with start(scenario.cluster, Path(directory) / "log") as serving:
                return asyncio.run(play(scenario, serving.control, listener))
        except CannotServe as error:
            outcome = ScenarioOutcome(
                scenario=scenario, steps=(), elapsed_ms=0, problem=str(error), journal=()
            )
            listener.begins(scenario)
            listener.ended(outcome)
            return outcome
