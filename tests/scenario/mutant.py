"""Clusters that do something wrong, to show that a scenario notices: ``MUTANT serve ...``.

``python -m tests.scenario.mutant kip-207-gate serve --brokers 3`` is ``fencepost serve`` with a
broker that does not do what the scenario of that name is about. It does all else as ever. Where a
scenario is about `fencepost.client.Consumer`, that is what does it wrong, in the process that plays
the scenario (`broken_consumer`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from fencepost.cli import main
from tests.scenario import (
    broker_mutants,
    consumer_mutants,
    expected_offsets_mutants,
    tier_mutants,
    transaction_mutants,
)
from tests.scenario.mutation import Mutant, applied

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

MUTANTS: Final[dict[str, Mutant]] = {
    **broker_mutants.MUTANTS,
    **consumer_mutants.MUTANTS,
    **expected_offsets_mutants.MUTANTS,
    **tier_mutants.MUTANTS,
    **transaction_mutants.MUTANTS,
}


def broken_consumer(name: str) -> AbstractContextManager[None]:
    """Have the consumers of this process do what the scenario of that name says that none does."""
    return applied(MUTANTS[name])


def run(arguments: list[str]) -> int:
    name, *rest = arguments
    MUTANTS[name].apply()
    return main(rest)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
