"""The steps that start, look at, await and end the user's own processes."""

from collections.abc import Mapping

from fencepost.scenario.actions.context import InvalidAction
from fencepost.scenario.assertions import StepResult
from fencepost.scenario.document import Data, resolve
from fencepost.scenario.model import ProcessCall
from fencepost.scenario.processes import (
    CannotRun,
    KillBody,
    ProcessAnswer,
    ProcessBody,
    Processes,
    RunBody,
    UserProcess,
)
from fencepost.verbs.problems import InvalidModel


class ProcessSteps:
    """Carries them out, and knows the processes in the background.

    :param answers: Of earlier steps by their names; it grows.
    """

    def __init__(self, processes: Processes, answers: Mapping[str, Data]) -> None:
        self._processes = processes
        self._answers = answers
        self._background: dict[str, UserProcess] = {}

    async def perform(self, do: ProcessCall, background: str | None, within_s: float) -> StepResult:
        """Carry one out.

        :param background: The name under which a process goes on.
        :raises InvalidAction: When it cannot be done.
        """
        match self._body(do):
            case RunBody() as body if background is not None:
                return await self._start(body, background, within_s)
            case RunBody() as body:
                return await self._run(body, within_s)
            case KillBody() as body:
                return await self._kill(self._process(body.process), body, within_s)
            case ProcessBody() as body:
                return StepResult(answer=_plain(self._process(body.process)))
            case body:
                raise AssertionError(body)

    def has(self, name: str) -> bool:
        """Whether a process in the background has this name."""
        return name in self._background

    def is_running(self, name: str) -> bool:
        """Whether a process in the background has not exited."""
        return self._process(name).is_running

    async def wait(self, name: str, within_s: float) -> StepResult:
        """Wait for the exit of a process in the background."""
        return await _wait_for_exit(self._process(name), within_s)

    def answers(self) -> dict[str, ProcessAnswer]:
        """The processes in the background as they are now."""
        return {name: process.answer() for name, process in self._background.items()}

    async def close(self) -> None:
        """Kill what still runs."""
        await self._processes.close()

    async def _start(self, body: RunBody, name: str, within_s: float) -> StepResult:
        process = self._background[name] = await self._started(body)
        if body.ready is None:
            return StepResult()
        why = await process.wait_until_ready(body.ready, within_s)
        return StepResult() if why is None else StepResult(awaited="it ready", timeout_reason=why)

    async def _run(self, body: RunBody, within_s: float) -> StepResult:
        process = await self._started(body)
        came = await _wait_for_exit(process, within_s)
        await process.close()
        return came

    async def _kill(self, process: UserProcess, body: KillBody, within_s: float) -> StepResult:
        if process.is_running:
            process.send(body.signal)
        if body.ends and not await process.wait(within_s):
            return _timeout(process, within_s)
        return StepResult(answer=_plain(process))

    async def _started(self, body: RunBody) -> UserProcess:
        try:
            return await self._processes.start(body)
        except CannotRun as error:
            raise InvalidAction(str(error)) from None

    def _body(self, do: ProcessCall) -> object:
        arguments = resolve(do.arguments, self._answers)
        try:
            return do.step.request_model.model_validate(arguments)
        except InvalidModel as error:  # a reference stands for a value of another type
            raise InvalidAction(error.problems[0].line) from None

    def _process(self, name: str) -> UserProcess:
        found = self._background.get(name)
        if found is None:
            raise InvalidAction(f"no process {name!r} is in the background")
        return found


async def _wait_for_exit(process: UserProcess, within_s: float) -> StepResult:
    if not await process.wait(within_s):
        return _timeout(process, within_s)
    return StepResult(answer=_plain(process), is_exit=True)


def _timeout(process: UserProcess, within_s: float) -> StepResult:
    why = f"no exit within {within_s * 1000:.0f} ms"
    return StepResult(answer=_plain(process), awaited="its exit", timeout_reason=why)


def _plain(process: UserProcess) -> Data:
    plain: Data = process.answer().model_dump(mode="json")
    return plain
