"""The scenarios that ship, and files by the same option."""

from pathlib import Path
from typing import Final

from fencepost.control.scenario.format import read_file
from fencepost.control.scenario.mistakes import nearest
from fencepost.control.scenario.model import Scenario

SHIPPED: Final = Path(__file__).parent.parent / "scenarios"
_SUFFIXES: Final = (".yaml", ".yml")


class NotFound(Exception):
    """There is no scenario of that name and no such file. The text is one line."""


def shipped() -> dict[str, Path]:
    """The files of the shipped scenarios by their names, sorted."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def find(asked: str) -> Path:
    """The file of a scenario that is asked for by its name or by its path.

    :raises NotFound: When there is none.
    """
    names = shipped()
    if asked in names:
        return names[asked]
    path = Path(asked)
    if path.is_file():
        return path
    if path.suffix in _SUFFIXES or len(path.parts) > 1:
        raise NotFound(f"there is no file {asked}")
    raise NotFound(f"there is no scenario {asked!r}{nearest(asked, names)}")


def read(asked: str) -> Scenario:
    """A scenario by its name or by its path.

    :raises NotFound: When there is none, or it cannot be read.
    :raises Mistake: When something in it is wrong.
    """
    path = find(asked)
    try:
        return read_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{path} cannot be read: {error}") from None
