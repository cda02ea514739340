"""A scenario played on a cluster, step by step, until one of them is not as expected."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from fencepost.control.scenario.acting import Acting
from fencepost.control.scenario.action_bodies import ActionBody
from fencepost.control.scenario.asked import CannotAct, Session
from fencepost.control.scenario.compare import Mismatch
from fencepost.control.scenario.document import Data
from fencepost.control.scenario.judging import Came, Judge, carry_out
from fencepost.control.scenario.model import (
    Await,
    DoAction,
    DoVerb,
    Expectation,
    Scenario,
    Step,
    Together,
)
from fencepost.control.scenario.outcome import Listener, ScenarioOutcome, StepOutcome
from fencepost.control.scenario.references import Unresolved, resolve
from fencepost.control.scenario.truth import Truth
from fencepost.control.scenario.witness import Witness, asks_for_events
from fencepost.verbs.answers.seen import ExchangeState
from fencepost.verbs.catalogue import Shape
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.remote import Refused, VerbError
from fencepost.verbs.remote_async import AsyncRemote

AGAIN_S: Final = 0.01
"""Between two attempts of ``until``."""
_SHOWN_EXCHANGES: Final = 16
_GIVES_IDS: Final = 4
"""The version of JoinGroup from which on a new member is given an id before it joins (KIP-394)."""


async def play(scenario: Scenario, control: str, listener: Listener) -> ScenarioOutcome:
    """Play a scenario on a cluster, which is reset first.

    :param control: The URL of its control API.
    """
    remote = AsyncRemote(control)
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
    witness = Witness(verbs)
    try:
        if asks_for_events(scenario.steps):
            await witness.begin()
        else:
            await verbs.reset()
        return await _play_steps(scenario, remote, verbs, listener, witness)
    finally:
        await witness.close()


async def _play_steps(
    scenario: Scenario,
    remote: AsyncRemote,
    verbs: AsyncVerbs,
    listener: Listener,
    witness: Witness,
) -> tuple[StepOutcome, ...]:
    for topic in scenario.topics:
        await carry_out(remote, "create_topic", topic.model_dump(exclude_unset=True))
    truth = Truth(verbs)
    addresses = await truth.addresses()
    bootstrap = ",".join(f"{host}:{port}" for host, port in addresses.values())
    acting = Acting(Session(truth, bootstrap, addresses))
    player = _Player(remote, verbs, acting, witness)
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
        self, remote: AsyncRemote, verbs: AsyncVerbs, acting: Acting, witness: Witness
    ) -> None:
        self._remote = remote
        self._verbs = verbs
        self._acting = acting
        self._witness = witness
        self._answers: dict[str, Data] = {}
        self._marks: dict[str, int] = {}
        self._background: dict[str, asyncio.Task[Data]] = {}
        self._judge = Judge(remote, self._answers, self._marks)
        self._last = Came()

    async def close(self) -> None:
        """End what goes on in the background, and all clients."""
        for task in self._background.values():
            task.cancel()
        await asyncio.gather(*self._background.values(), return_exceptions=True)
        await self._acting.close()

    async def step(self, step: Step) -> StepOutcome:
        """One step, as often as it says."""
        began = time.perf_counter()
        if step.name is not None:
            self._marks[step.name] = await self._newest()
        came, mismatches, problem = Came(), list[Mismatch](), None
        inner: tuple[StepOutcome, ...] = ()
        try:
            if isinstance(step.do, Together):
                done = asyncio.gather(*map(self.step, step.do.steps))
                inner = tuple(await done)
            for _ in range(step.repeat):
                came, mismatches = await self._once(step)
                if mismatches:
                    break
        except (Unresolved, CannotAct) as error:
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

    async def _once(self, step: Step) -> tuple[Came, list[Mismatch]]:
        deadline = time.monotonic() + step.within_ms / 1000
        while True:
            came = await self._came(step)
            if step.until is None:
                return came, await self._mismatches(step.expect, came)
            mismatches = await self._mismatches(step.until, came)
            if not mismatches:
                if step.expect is not None:
                    mismatches = await self._mismatches(step.expect, came)
                return came, mismatches
            if time.monotonic() > deadline:
                return came, mismatches
            await asyncio.sleep(AGAIN_S)

    async def _mismatches(self, expected: Expectation | None, came: Came) -> list[Mismatch]:
        pending = None if expected is None else expected.pending
        is_pending = pending is not None and not self._background[pending].done()
        return await self._judge.mismatches(expected, came, is_pending=is_pending)

    # -- what is done ---------------------------------------------------------------------------

    async def _came(self, step: Step) -> Came:
        match step.do:
            case DoVerb():
                came = await self._verb(step.do, step.within_ms)
            case DoAction() if step.background is not None:
                await self._begin(step.do, step.background, step.within_ms)
                return Came()
            case DoAction():
                came = Came(answer=await self._act(step.do, None), is_action=True)
            case Await():
                came = await self._awaited(step.do, step.within_ms)
            case Together():
                return Came()
            case None:
                return Came(answer=self._last.answer, refused=None)
        self._last = came
        return came

    async def _verb(self, do: DoVerb, within_ms: int) -> Came:
        given = resolve(do.given, self._answers)
        assert isinstance(given, dict)
        if do.verb.shape is Shape.STREAM:
            since = given.get("since")
            assert since is None or isinstance(since, int)
            return Came(answer=await self._witness.tell(since, within_ms / 1000))
        try:
            return Came(answer=await carry_out(self._remote, do.verb.name, given))
        except Refused as refused:
            return Came(refused=refused)

    async def _act(self, do: DoAction, background: str | None) -> Data:
        body = self._body(do, background)
        answer = await self._acting.act(do.action, body)
        plain: Data = answer.model_dump(mode="json")
        return plain

    def _body(self, do: DoAction, background: str | None) -> ActionBody:
        given = resolve(do.given, self._answers)
        assert isinstance(given, dict)
        if background is not None and "member" not in do.action.takes.model_fields:
            given = {"client": background, **given}
        return do.action.takes.model_validate(given)

    # -- the background -------------------------------------------------------------------------

    async def _begin(self, do: DoAction, name: str, within_ms: int) -> None:
        """Begin an action; done when the broker has its request, or after so long."""
        since = await self._newest()
        task = asyncio.create_task(self._act(do, name))
        self._background[name] = task
        api = do.action.api or do.given.get("api")
        given: dict[str, Data] = {"since": since, "api": None if api is None else str(api)}
        deadline = time.monotonic() + within_ms / 1000
        while api is not None and not task.done() and time.monotonic() < deadline:
            if await self._is_seen(given, do, name):
                return
            await asyncio.sleep(AGAIN_S)

    async def _is_seen(self, given: Mapping[str, Data], do: DoAction, name: str) -> bool:
        """Whether the journal has the request of an action in the background.

        Of a member that has no id yet, the request that counts is the second: the first one is
        answered with an id, unless it is a static member's (KIP-345).
        """
        client = do.given.get("client") or do.given.get("member") or name
        found = await carry_out(self._remote, "trace", {**given, "client_id": client, "limit": 10})
        assert isinstance(found, list)
        return any(map(_counts, found))

    async def _awaited(self, do: Await, within_ms: int) -> Came:
        task = self._background[do.name]
        await asyncio.wait([task], timeout=within_ms / 1000)
        if not task.done():
            return Came(late=f"none within {within_ms} ms")
        return Came(answer=task.result(), is_action=True)

    async def _newest(self) -> int:
        """The number of the journal's last exchange."""
        found = await self._verbs.trace(source="all", limit=1)
        return found[-1].number if found else 0


def _ms_since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


def _counts(exchange: Data) -> bool:
    """Whether it is the request of an action, and not one that asks for a member id first."""
    assert isinstance(exchange, dict)
    if exchange["api"] != "JoinGroup":
        return True
    version, request = exchange["version"], exchange["request"]
    assert isinstance(version, int)
    assert isinstance(request, dict)
    is_given_an_id = version >= _GIVES_IDS and request.get("group_instance_id") is None
    return bool(request["member_id"]) or not is_given_an_id
