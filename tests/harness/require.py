"""What a test needs from the machine: found, or skipped with a reason, or (under CI) failed."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

from tests.harness.in_process import starts_a_process


def under_ci() -> bool:
    """Whether nothing may be skipped."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def unavailable(reason: str) -> NoReturn:
    """Skip on a user's machine; fail where everything is meant to be installed."""
    if under_ci():
        pytest.fail(f"{reason} (nothing may be skipped under CI)", pytrace=False)
    pytest.skip(reason)


def tool(name: str) -> str:
    """The path of a program, such as ``kcat``."""
    path = shutil.which(name)
    if path is None:
        unavailable(f"{name} is not installed")
    starts_a_process()
    return path
