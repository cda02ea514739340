"""A scenario run from its file to its outcome: on a cluster that is served for it, or on another.

The seed is the same in every run unless another one is wanted, so that a run can be repeated.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fencepost.scenario.cluster_requirements import check_requirements
from fencepost.scenario.model import Listener, Scenario, ScenarioOutcome
from fencepost.scenario.player import play
from fencepost.verbs.serving import CannotServe, ClusterBody, start

DEFAULT_SEED: Final = 0
"""Of a cluster's random choices, where neither the file nor the caller has one."""


def refuse_processes(scenario: Scenario) -> None:
    """See that a scenario starts no process.

    :raises ScenarioFileError: At the first step that does.
    """
    for step in scenario.steps:
        if step.starts_process:
            text = "this step starts a process on this machine, which --allow-run allows"
            raise scenario.document.error_at(step.path, text)


def run(
    scenario: Scenario,
    listener: Listener,
    *,
    allow_run: bool = False,
    against: str | None = None,
    token: str | None = None,
    reset: bool = False,
    seed: int | None = None,
) -> ScenarioOutcome:
    """Run a scenario.

    :param allow_run: Whether its steps may start processes on this machine.
    :param against: The URL of a control API, on whose cluster it is played. None: a process of its
        own serves a cluster as the scenario wants it.
    :param token: What that control API needs where other machines can reach it.
    :param reset: Whether that cluster forgets everything first.
    :param seed: Of the cluster's random choices; None is the file's, or else `DEFAULT_SEED`. A
        cluster that is there must have it, where it is not None here and in the file.
    :raises ScenarioFileError: When it starts processes and may not.
    :raises RequirementsNotMet: When that cluster is another one than the scenario takes.
    :raises VerbError: When it cannot be asked.
    """
    if not allow_run:
        refuse_processes(scenario)
    wanted = scenario.cluster if seed is None else _with_seed(scenario.cluster, seed)
    if against is not None:
        created = () if reset else scenario.topics
        asyncio.run(check_requirements(wanted, against, created=created, token=token))
        return asyncio.run(play(scenario, against, listener, reset=reset, token=token))
    if wanted.seed is None:
        wanted = _with_seed(wanted, DEFAULT_SEED)
    with TemporaryDirectory(prefix="fencepost-scenario-") as directory:
        try:
            with start(wanted, Path(directory) / "log") as serving:
                return asyncio.run(play(scenario, serving.control, listener, reset=True))
        except CannotServe as error:
            outcome = ScenarioOutcome(
                scenario=scenario,
                seed=wanted.seed,
                steps=(),
                elapsed_ms=0,
                problem=str(error),
                journal=(),
            )
            listener.begins(scenario)
            listener.ended(outcome)
            return outcome


def _with_seed(wanted: ClusterBody, seed: int) -> ClusterBody:
    return wanted.model_copy(update={"seed": seed})
