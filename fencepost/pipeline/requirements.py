"""What must be installed before a job runs; each missing thing told in one line.

Where Spark runs: what ``--master`` may be, and whether it is there.

Spark itself finds out after it has started, with pages of Java, and tries for a minute to reach a
master that is not there.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SPARK_VERSION: Final = "4.2.0"
"""The version of Spark, of its Python package and of the Kafka connector alike."""
MIN_JAVA_VERSION: Final = 17
"""The oldest Java that this Spark runs on."""
EXTRA: Final = "pip install 'fencepost[spark]'"
_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "pandas", "jinja2", "matplotlib")


class CannotRunError(Exception):
    """A job cannot be run at all. Its text is one line that a user can act on."""


def require_packages() -> None:
    """Look for the packages of the extra ``spark``.

    :raises CannotRunError: When one is missing.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise CannotRunError(f"{', '.join(missing)} not installed: {EXTRA}")


def require_java() -> str:
    """The program ``java``: that of ``JAVA_HOME``, or else the first on the path.

    :raises CannotRunError: When there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if program is None:
        where = f"in JAVA_HOME ({home})" if home else "on the path"
        raise CannotRunError(
            f"Spark needs Java {MIN_JAVA_VERSION} or later; there is no java {where}"
        )
    version = java_version(program)
    if version < MIN_JAVA_VERSION:
        raise CannotRunError(
            f"Spark needs Java {MIN_JAVA_VERSION} or later; {program} is Java {version}"
        )
    return program


def java_version(program: str) -> int:
    """The feature version of a ``java``, such as 17; 0 where it does not tell."""
    told = subprocess.run(  # noqa: S603  # a program, and no shell to read its options
        [program, "-version"], capture_output=True, text=True, check=False
    )
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else 0


_FORMS: Final = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+")
_STANDALONE: Final = "spark://"
_CONNECT_TIMEOUT_S: Final = 10.0


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver's own JVM."""
    return master.partition("[")[0] == "local"


def require_master(master: str) -> None:
    """Look whether Spark could run there.

    :raises CannotRunError: When it is no master at all, or a standalone one that does not answer.
    """
    if not _FORMS.fullmatch(master):
        forms = "local[N], spark://HOST:PORT, yarn or k8s://URL"
        raise CannotRunError(f"--master {master}: not {forms}")
    if not master.startswith(_STANDALONE):
        return
    reasons = []
    for address in master.removeprefix(_STANDALONE).split(","):
        reason = _connection_error(address)
        if not reason:
            return
        reasons.append(f"{address} ({reason})")
    raise CannotRunError(f"no Spark master answers at {' nor '.join(reasons)}")


def _connection_error(address: str) -> str:
    """Why nobody can be reached at ``HOST:PORT``; nothing where somebody can."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return "not HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # no port, no name of a host
        return str(error)
    return ""
