"""A Go client's kversion, as ``kcl misc probe-version``, guesses what ``--like-kafka`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fencepost.protocol.apis import APIS
from tests.harness.golang import build_program
from tests.harness.run import run
from tests.harness.served_cluster import serving

NEWEST_KEY: Final = 100
"""Kafka has no API with this key or one above it."""
NOT_SERVED: Final = sorted({*range(NEWEST_KEY)} - {api.key for api in APIS})
"""The keys of the APIs that no cluster here has, transactions first of all: they do not count."""


@pytest.mark.parametrize(
    ("options", "guess"),
    [
        (["--conformance", "apache"], "v4.3"),
        (["--like-kafka", "4.3"], "v4.3"),
        (["--like-kafka", "3.9"], "v3.9"),
        (["--like-kafka", "3.6"], "v3.6"),
        (["--like-kafka", "3.5"], "v3.5"),
        (["--like-kafka", "2.1"], "v2.1"),
    ],
)
def test_the_release_is_guessed_by_what_is_served(
    tmp_path: Path, options: list[str], guess: str
) -> None:
    program = build_program("guess")
    with serving(tmp_path / "log", *options, brokers=1) as cluster:
        found = run([str(program), cluster.bootstrap, *map(str, NOT_SERVED)])
    assert found.out.strip() == guess
