"""What a mutant is: a rule that is switched off, and what has to break then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Inject = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One rule that is switched off."""

    name: str
    inject: Inject
    breaks: frozenset[str]
    """The invariants of which one must fail."""
    first_seed: int = 0
    """The seed to begin with: one that breaks it soon. Without it more seeds are tried."""
    consumers: bool = False
    """Whether it is found by the seeds with applications."""
    transactions: bool = False
    """Whether it is found by the seeds with transactional producers."""
