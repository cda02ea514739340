"""What must be installed before a job runs; each missing thing told in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SPARK: Final = "4.2.0"
"""The version of Spark, of its Python package and of the Kafka connector alike."""
JAVA: Final = 17
"""The oldest Java that this Spark runs on."""
EXTRA: Final = "pip install 'fencepost[spark]'"
_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "pandas", "jinja2", "matplotlib")


class CannotRunError(Exception):
    """A job cannot be run at all. Its text is one line that a user can act on."""


def need_packages() -> None:
    """Look for the packages of the extra ``spark``.

    :raises CannotRunError: When one is missing.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise CannotRunError(f"{', '.join(missing)} not installed: {EXTRA}")


def need_java() -> str:
    """The program ``java``: that of ``JAVA_HOME``, or else the first on the path.

    :raises CannotRunError: When there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if program is None:
        where = f"in JAVA_HOME ({home})" if home else "on the path"
        raise CannotRunError(f"Spark needs Java {JAVA} or later; there is no java {where}")
    version = java_version(program)
    if version < JAVA:
        raise CannotRunError(f"Spark needs Java {JAVA} or later; {program} is Java {version}")
    return program


def java_version(program: str) -> int:
    """The feature version of a ``java``, such as 17; 0 where it does not tell."""
    told = subprocess.run(  # noqa: S603  # a program, and no shell to read its options
        [program, "-version"], capture_output=True, text=True, check=False
    )
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else 0
