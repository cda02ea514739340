"""All actions of a scenario's clients, by name, and how one is carried out.

Each module of this package that has ``ACTIONS`` defines actions: a new one needs no other place.
"""

import pkgutil
import time
from collections.abc import Iterator
from importlib import import_module
from types import MappingProxyType
from typing import Final

from fencepost.client.errors import Failure, KafkaClientError
from fencepost.scenario import actions
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionBody,
    ActionContext,
    NoCoordinator,
    ScenarioClients,
)


def defined_actions() -> Iterator[Action]:
    """The actions of each module, in alphabetical order of the modules."""
    for module in pkgutil.iter_modules(actions.__path__, f"{actions.__name__}."):
        if module.name != __name__:
            yield from getattr(import_module(module.name), "ACTIONS", ())


ACTIONS: Final = MappingProxyType({each.name: each for each in defined_actions()})
"""By name, in the order of their modules."""


async def execute(clients: ScenarioClients, action: Action, body: ActionBody) -> ActionAnswer:
    """Carry out an action; that no answer comes is an answer as well.

    :raises InvalidAction: When it cannot be done as it stands.
    """
    context = clients.new_context(body)
    began = time.perf_counter()
    try:
        answer = await action.run(clients, context, body)
    except KafkaClientError as error:
        answer = _failed_answer(context, body, failed=error.failure)
    except TimeoutError:
        answer = _failed_answer(context, body, failed=Failure.TIMED_OUT)
    except NoCoordinator as error:
        answer = _failed_answer(context, body, error=str(error))
    elapsed_ms = round((time.perf_counter() - began) * 1000)
    return answer.model_copy(update={"elapsed_ms": elapsed_ms})


def _failed_answer(
    context: ActionContext,
    body: ActionBody,
    *,
    failed: str | None = None,
    error: str | None = None,
) -> ActionAnswer:
    return ActionAnswer(
        error=error,
        failed=failed,
        broker=context.broker,
        version=body.version,
        throttle_time_ms=0,
        elapsed_ms=0,
    )
