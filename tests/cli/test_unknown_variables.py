"""Variables of the environment that look like options and are none."""

from __future__ import annotations

import json
import os
import sys

import pytest

from fencepost.broker.server.run import ServeOptions
from fencepost.cli.serve import parse_options
from fencepost.cli.unknown_variables import unknown_variables
from tests.harness.run import run


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("FENCEPOST_BROKER", "it sets no option; did you mean FENCEPOST_BROKERS?"),
        ("FENCEPOST_ADVERTISED", "it sets no option; did you mean FENCEPOST_ADVERTISE?"),
        ("FENCEPOST_CONTROL_POTR", "it sets no option; did you mean FENCEPOST_CONTROL_PORT?"),
        ("FENCEPOST_ZZZZ", "it sets no option"),
    ],
)
def test_an_unknown_variable_is_told_with_the_nearest(name: str, reason: str) -> None:
    environment = {name: "x", "FENCEPOST_SEED": "0"}
    expected = ServeOptions(seed=0, ignored_variables={name: reason})
    assert parse_options([], environment) == expected
    assert parse_options([], environment | {name: ""}) == ServeOptions(seed=0)


def test_the_log_has_what_is_ignored() -> None:
    command = [sys.executable, "-m", "fencepost", "serve", "--port=0", "--control-port=0"]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("FENCEPOST_")}
    done = run([*command, "--stop-with-stdin"], env=kept | {"FENCEPOST_BROKER": "3"})
    first = json.loads(done.err.splitlines()[0])
    assert (first["event"], first["level"]) == ("variable_ignored", "warning")
    assert first["variable"] == "FENCEPOST_BROKER"
    assert first["detail"] == "it sets no option; did you mean FENCEPOST_BROKERS?"


def test_variables_of_other_commands_are_known() -> None:
    names = ["FENCEPOST_CONTROL", "FENCEPOST_SEEDS", "FENCEPOST_MASTER", "FENCEPOST_BOOTSTRAP"]
    assert list(unknown_variables([*names, "FENCEPOST_TEST_CACHE"])) == []
