"""``python -m tools.oldest``: the oldest version of each dependency that pyproject.toml allows.

They are printed as constraints, one a line. `make lock` resolves requirements/oldest.txt with them,
which `make test-oldest` installs: a lower bound that no test has seen is a guess.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

PYPROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)\s*(\[[^]]*\])?(?P<bounds>[^;]*?)\s*(;\s*(?P<marker>.*))?"
)
_BOUND: Final = re.compile(r"(>=|==)\s*([^,\s]+)")


class NoLowerBound(ValueError):
    """A requirement has no oldest version. The text is the requirement."""


def runtime_requirements(pyproject: Path = PYPROJECT) -> list[str]:
    """What an installation needs, with all extras: no tool and no test is among it."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras: Iterable[list[str]] = project.get("optional-dependencies", {}).values()
    return [*project["dependencies"], *(each for extra in extras for each in extra)]


def oldest_versions(requirements: Iterable[str]) -> Iterator[str]:
    """Each requirement, pinned to the oldest version that it allows.

    :raises NoLowerBound: When one allows any version.
    """
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement)
        bound = None if found is None else _BOUND.search(found["bounds"])
        if found is None or bound is None:
            raise NoLowerBound(requirement)
        marker = f" ; {found['marker']}" if found["marker"] else ""
        yield f"{found['name']}=={bound[2]}{marker}"


if __name__ == "__main__":
    print(*oldest_versions(runtime_requirements()), sep="\n")
