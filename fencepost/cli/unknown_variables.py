"""Variables of the environment that look like options and are none."""

from collections.abc import Iterable, Iterator
from typing import Final

from fencepost.cli.environment import PREFIX
from fencepost.cli.serve_options import SERVE_OPTIONS

_READ_ELSEWHERE: Final = frozenset({"FENCEPOST_CONTROL", "FENCEPOST_SPARK_JARS"})
"""Variables that other programs of this package read, besides the options of commands."""
_OF_TESTS: Final = "FENCEPOST_TEST_"


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
