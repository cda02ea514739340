"""A scenario played on a cluster, step by step, until one of them is not as expected.

Scenarios run each on a cluster of its own, or one after the other on a cluster that is there. What
that did before is none of their events and exchanges.
"""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from fencepost.scenario.actions.context import (
    ActionBody,
    ControlClient,
    InvalidAction,
    ScenarioClients,
)
from fencepost.scenario.actions.executor import execute
from fencepost.scenario.assertions import ExpectationChecker, StepResult, call_verb
from fencepost.scenario.background_actions import RETRY_INTERVAL_S, BackgroundActions
from fencepost.scenario.compare import Mismatch
from fencepost.scenario.document import Data, RangeTooLong, UnresolvedReference, resolve
from fencepost.scenario.event_recorder import EventRecorder
from fencepost.scenario.model import (
    ActionCall,
    Await,
    Expectation,
    Listener,
    Parallel,
    ProcessCall,
    Scenario,
    ScenarioOutcome,
    Step,
    StepOutcome,
    VerbCall,
)
from fencepost.scenario.process_steps import ProcessSteps
from fencepost.scenario.processes import ProcessAnswer, Processes
from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.catalogue import Shape
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.problems import InvalidModel
from fencepost.verbs.remote import Refused, VerbError
from fencepost.verbs.remote_async import AsyncRemote

_SHOWN_EXCHANGES: Final = 16


async def play(
    scenario: Scenario, control: str, listener: Listener, *, reset: bool, token: str | None = None
) -> ScenarioOutcome:
    """Play a scenario on a cluster.

    :param control: The URL of its control API.
    :param reset: Whether the cluster forgets everything first.
    :param token: What its control API needs where other machines can reach it.
    """
    remote = AsyncRemote(control, token=token)
    began = time.perf_counter()
    listener.begins(scenario)
    played = _Played()
    journal: tuple[ExchangeState, ...] = ()
    seed, problem = None, None
    try:
        verbs = AsyncVerbs(remote)
        try:
            seed = (await verbs.cluster()).seed
            session = _Session(scenario, remote, verbs, listener, token)
            played = await _play(session, reset=reset)
            if not all(each.passed for each in played.steps):
                journal = tuple(await verbs.trace(source="all", limit=_SHOWN_EXCHANGES))
        except VerbError as error:
            problem = str(error)
    finally:
        remote.close()
    outcome = ScenarioOutcome(
        scenario=scenario,
        seed=seed,
        steps=played.steps,
        elapsed_ms=_ms_since(began),
        problem=problem,
        journal=journal,
        processes=played.processes,
    )
    listener.ended(outcome)
    return outcome


class _Session(Struct, frozen=True):
    """A scenario that is played on a cluster."""

    scenario: Scenario
    remote: AsyncRemote
    verbs: AsyncVerbs
    listener: Listener
    token: str | None

    def processes(self, bootstrap: str) -> Processes:
        """The processes of the user, which find the cluster by their environment."""
        addresses = {"bootstrap": bootstrap, "control": self.remote.url}
        directory = Path(self.scenario.document.file).resolve().parent
        return Processes(addresses, self.token, directory)


class _Played(Struct, frozen=True):
    """What came of a session."""

    steps: tuple[StepOutcome, ...] = ()
    processes: Mapping[str, ProcessAnswer] = field(default_factory=dict)


async def _play(session: _Session, *, reset: bool) -> _Played:
    recorder = EventRecorder(session.verbs)
    try:
        if session.scenario.needs_events:
            await recorder.start(reset=reset)
        elif reset:
            await session.verbs.reset()
        began_at = 0 if reset else await _newest_exchange(session.verbs)
        return await _play_steps(session, recorder, began_at)
    finally:
        await recorder.close()


async def _play_steps(session: _Session, recorder: EventRecorder, began_at: int) -> _Played:
    scenario, listener = session.scenario, session.listener
    for topic in scenario.topics:
        await call_verb(session.remote, "create_topic", topic.model_dump(exclude_unset=True))
    control = ControlClient(session.verbs, began_at)
    addresses = await control.addresses()
    bootstrap = ",".join(f"{host}:{port}" for host, port in addresses.values())
    clients = ScenarioClients(control, bootstrap, addresses)
    player = _Player(session.remote, clients, recorder, session.processes(bootstrap))
    outcomes: list[StepOutcome] = []
    try:
        for number, step in enumerate(scenario.steps, start=1):
            listener.step_begins(step, number, len(scenario.steps))
            outcome = await player.step(step)
            outcomes.append(outcome)
            listener.step_ended(outcome)
            if not outcome.passed:
                break
        return _Played(tuple(outcomes), player.processes.answers())
    finally:
        await player.close()


async def _newest_exchange(verbs: AsyncVerbs) -> int:
    """The number of the journal's last exchange."""
    found = await verbs.trace(source="all", limit=1)
    return found[-1].number if found else 0


class _Player:
    """Plays the steps of one scenario."""

    def __init__(
        self,
        remote: AsyncRemote,
        clients: ScenarioClients,
        recorder: EventRecorder,
        processes: Processes,
    ) -> None:
        self._remote = remote
        self._verbs = clients.control.verbs
        self._clients = clients
        self._recorder = recorder
        self._answers: dict[str, Data] = {}
        self.processes = ProcessSteps(processes, self._answers)
        self._marks: dict[str, int] = {}
        self._background = BackgroundActions(remote, self._call_action)
        self._checker = ExpectationChecker(
            remote, self._answers, self._marks, clients.control.began_at
        )
        self._last = StepResult()

    async def close(self) -> None:
        """End what goes on in the background, all clients and all processes."""
        await self.processes.close()
        await self._background.close()
        await self._clients.close()

    async def step(self, step: Step) -> StepOutcome:
        """One step, as often as it says."""
        began = time.perf_counter()
        if step.name is not None:
            self._marks[step.name] = await _newest_exchange(self._verbs)
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
        is_pending = pending is not None and await self._is_pending(pending)
        return await self._checker.mismatches(expected, came, is_pending=is_pending)

    async def _is_pending(self, name: str) -> bool:
        if self.processes.has(name):
            return self.processes.is_running(name)
        return await self._background.is_pending(name)

    # -- verbs and actions ----------------------------------------------------------------------

    async def _perform(self, step: Step) -> StepResult:
        match step.do:
            case VerbCall():
                came = await self._call_verb(step.do, step.within_ms)
            case ActionCall() if step.background is not None:
                since = await _newest_exchange(self._verbs)
                name, within_ms = step.background, step.within_ms
                await self._background.start(step.do, name, within_ms, since=since)
                return StepResult()
            case ActionCall():
                came = StepResult(answer=await self._call_action(step.do, None), is_action=True)
            case ProcessCall():
                within_s = step.within_ms / 1000
                came = await self.processes.perform(step.do, step.background, within_s)
                if step.background is not None:
                    return came
            case Await():
                came = await self._wait(step.do, step.within_ms)
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

    async def _wait(self, do: Await, within_ms: int) -> StepResult:
        if self.processes.has(do.name):
            return await self.processes.wait(do.name, within_ms / 1000)
        return await self._background.wait(do.name, within_ms)

    async def _call_action(self, do: ActionCall, background: str | None) -> Data:
        body = self._body(do, background)
        answer = await execute(self._clients, do.action, body)
        plain: Data = answer.model_dump(mode="json")
        return plain

    def _body(self, do: ActionCall, background: str | None) -> ActionBody:
        arguments = resolve(do.arguments, self._answers)
        assert isinstance(arguments, dict)
        if background is not None and do.action.request_model.client_field == "client":
            arguments = {"client": background, **arguments}
        try:
            return do.action.request_model.model_validate(arguments)
        except InvalidModel as error:  # a reference stands for a value of another type
            raise InvalidAction(error.problems[0].line) from None


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
