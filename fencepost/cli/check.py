"""``fencepost check``: whether clients that run here reach every broker."""

import asyncio
from typing import Annotated, Final

import typer

from fencepost.cli.output import show_text
from fencepost.cli.typer_options import option
from fencepost.cli.usage_errors import InvalidUsage
from fencepost.client.client import parse_bootstrap
from fencepost.client.reachability import AddressCheck, check_addresses
from fencepost.protocol.listener_text import in_uri

UNREACHABLE: Final = 1
"""The exit code where an address can't be used."""
_ADVICE: Final = (
    "Clients connect to these addresses: --advertise and --listener of fencepost serve, or"
    " advertised.listeners of a Kafka, say them."
)


def register(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command()(check)


def check(
    bootstrap: Annotated[
        str,
        option("bootstrap", "HOST:PORT,...", "Bootstrap servers, as the client has them."),
    ] = "127.0.0.1:9092",
    timeout_ms: Annotated[
        int,
        option("timeout-ms", "MS", "How long an address may take to answer.", at_least=1),
    ] = 5000,
) -> None:
    """Connect to every address that brokers advertise, as a client does; run it where that runs.

    Exit code 1 where one of them can't be used. It works with any Kafka without TLS and SASL.
    """
    try:
        servers = parse_bootstrap(bootstrap)
    except ValueError as error:
        raise InvalidUsage(f"--bootstrap: {error}") from None
    checks = asyncio.run(check_addresses(servers, timeout_s=timeout_ms / 1000))
    for each in checks:
        show_text(_line(each))
    if any(each.problem is not None for each in checks):
        if any(each.problem is not None and each.broker is not None for each in checks):
            show_text(_ADVICE)
        raise typer.Exit(UNREACHABLE)


def _line(check: AddressCheck) -> str:
    address = f"{in_uri(check.host)}:{check.port}"
    if check.broker is None:
        return f"bootstrap {address} {check.problem or 'answers'}"
    return f"broker {check.broker} is advertised as {address}, which {check.problem or 'answers'}"
