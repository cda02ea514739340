"""Scenarios run, each on a cluster of its own, or one after the other on one that is there."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from fencepost.control.scenario.fitting import check_fit
from fencepost.control.scenario.model import Scenario
from fencepost.control.scenario.outcome import Listener, ScenarioOutcome
from fencepost.control.scenario.play import play
from fencepost.verbs.serving import CannotServe, start


def run(scenario: Scenario, listener: Listener, *, against: str | None = None) -> ScenarioOutcome:
    """Run a scenario.

    :param against: The URL of a control API, whose cluster is reset first. None: a process of its
        own serves a cluster as the scenario wants it.
    :raises DoesNotFit: When that cluster is another one than the scenario takes.
    :raises VerbError: When it cannot be asked.
    """
    if against is not None:
        asyncio.run(check_fit(scenario.cluster, against))
        return asyncio.run(play(scenario, against, listener))
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
