"""The environment of ``fencepost serve``: variables that are no options of it.

Where a service is named ``fencepost``, Kubernetes and GitLab put ``FENCEPOST_PORT=tcp://...`` and
the like into the environment of every container beside it, as Docker's links did.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fencepost.cli.serve_options import SERVE_OPTIONS

PREFIX: Final = "FENCEPOST_"
_PORT_FORM: Final = re.compile(r"(?:tcp|udp|sctp)://")
_INJECTED: Final = re.compile(
    r"(?:[A-Z0-9_]+_)?"  # of a service whose name goes on, such as fencepost-inside
    r"(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?"
    r"|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR|START|END))?)"
    r"|NAME|ENV_.*"
)
"""Names without the service's own, by which Kubernetes and Docker's links describe it."""
_READ_ELSEWHERE: Final = frozenset({"FENCEPOST_CONTROL", "FENCEPOST_SPARK_JARS"})
"""Variables that other programs of this package read, besides the options of commands."""
_OF_TESTS: Final = "FENCEPOST_TEST_"


def without_service_variables(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables that begin with a prefix, but for those that describe a service of that name.

    :param prefix: Such as ``FENCEPOST_``.
    """
    return {
        name: text
        for name, text in environment.items()
        if name.startswith(prefix) and not _is_injected(name.removeprefix(prefix), text)
    }


def unknown_variables(environment: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Variables that set no option of any command, each with a clause that names the nearest.

    :param environment: Names that begin with ``FENCEPOST_``.
    """
    known = {option.variable for option in SERVE_OPTIONS} | _READ_ELSEWHERE
    unknown = {each for each in environment if not each.startswith(_OF_TESTS)} - known
    if unknown:  # what takes long is done only then
        from fencepost.protocol.lookup import did_you_mean

        known |= set(_variables_of_commands())
        for name in sorted(unknown - known):
            hint = did_you_mean(name.removeprefix(PREFIX), _without_prefix(known))
            yield name, f"it sets no option{hint.replace('mean ', f'mean {PREFIX}')}"


def _is_injected(name: str, text: str) -> bool:
    ends_so = name == "PORT" or name.endswith("_PORT")
    return bool(_INJECTED.fullmatch(name) or (ends_so and _PORT_FORM.match(text)))


def _without_prefix(names: Iterable[str]) -> list[str]:
    return [each.removeprefix(PREFIX) for each in names]


def _variables_of_commands() -> Iterator[str]:
    """The variables of the options of all commands."""
    import typer

    from fencepost.cli.commands import make_app

    commands = [typer.main.get_command(make_app())]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        for parameter in command.params:
            given = parameter.envvar or ()
            yield from [given] if isinstance(given, str) else given
