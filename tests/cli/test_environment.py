"""Variables of the environment that describe a service."""

from __future__ import annotations

import pytest

from fencepost.broker.server.run import ServeOptions
from fencepost.cli.serve import parse_options


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FENCEPOST_PORT", "tcp://10.0.0.1:9092"),
        ("FENCEPOST_SERVICE_HOST", "10.0.0.1"),
        ("FENCEPOST_SERVICE_PORT", "9092"),
        ("FENCEPOST_SERVICE_PORT_CONTROL", "9644"),
        ("FENCEPOST_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
        ("FENCEPOST_PORT_9092_TCP_ADDR", "10.0.0.1"),
        ("FENCEPOST_PORT_9092_TCP_PORT", "9092"),
        ("FENCEPOST_PORT_9092_TCP_PROTO", "tcp"),
        ("FENCEPOST_CONTROL_SERVICE_HOST", "10.0.0.1"),
        ("FENCEPOST_CONTROL_PORT", "tcp://10.0.0.1:9644"),
        ("FENCEPOST_CONTROL_PORT_9644_TCP_ADDR", "10.0.0.1"),
        ("FENCEPOST_NAME", "/runner-1/fencepost"),
        ("FENCEPOST_ENV_LANG", "C.UTF-8"),
    ],
)
def test_what_kubernetes_and_gitlab_say_of_a_service_named_fencepost_is_ignored(
    name: str, text: str
) -> None:
    assert parse_options(["--seed", "0"], {name: text}) == ServeOptions(seed=0)
