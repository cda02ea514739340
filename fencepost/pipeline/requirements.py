"""What a job needs before it runs: packages, Java, a Spark master, and the Kafka connector.

Each missing one is an error of one line. Spark itself reports it after it has started, with pages
of Java, and tries for a minute to reach a master that does not answer. The connector is five jars
that Maven fetches once, and that a session is started with.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fencepost.broker.server.extras import install_command

SPARK_VERSION: Final = "4.2.0"
"""The version of Spark, of its Python package and of the Kafka connector alike."""
MIN_JAVA_VERSION: Final = 17
"""The oldest Java that this Spark runs on."""
_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "pandas", "jinja2", "matplotlib")


class CannotRunError(Exception):
    """A job cannot be run at all. Its text is one line that a user can act on."""


def require_packages() -> None:
    """Look for the packages of the extra ``spark``.

    :raises CannotRunError: When one is missing.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        command = install_command("spark")
        raise CannotRunError(f"{', '.join(missing)} not installed: install them with {command}")


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
    completed = subprocess.run(  # noqa: S603  # a program, and no shell to read its options
        [program, "-version"], capture_output=True, text=True, check=False
    )
    found = re.search(r'version "(?:1\.)?(\d+)', completed.stderr + completed.stdout)
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
    """Why ``HOST:PORT`` refuses connections; empty where it accepts one."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return "not HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # no port, no name of a host
        return str(error)
    return ""


CONNECTOR_POM: Final = Path(__file__).with_name("connector.xml")
"""What Maven is to fetch."""
JARS_VARIABLE: Final = "FENCEPOST_SPARK_JARS"
"""The environment variable that names the folder of the jars."""
SETUP_COMMAND: Final = "fencepost spark setup"
_ANY_CONNECTOR: Final = "spark-sql-kafka-0-10_*.jar"
_CONNECTOR: Final = f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"
_MAVEN_TIMEOUT_S: Final = 600


def jars_folder() -> Path:
    """The folder of the jars: what `JARS_VARIABLE` names, or one in the user's cache."""
    chosen = os.environ.get(JARS_VARIABLE)
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    base = Path(cache) if cache else Path.home() / ".cache"
    return base / "fencepost" / f"spark-{SPARK_VERSION}-jars"


def is_connector_installed() -> bool:
    """Whether the jars were fetched, for this version of Spark."""
    return (jars_folder() / _CONNECTOR).is_file()


def connector_jars() -> list[Path]:
    """The jars, sorted by name. :raises CannotRunError: When they were never fetched."""
    if not is_connector_installed():
        raise CannotRunError(f"no Kafka connector in {jars_folder()}: {SETUP_COMMAND}")
    return sorted(jars_folder().glob("*.jar"))


def fetch_connector(*, force: bool = False) -> list[Path]:
    """Let Maven fetch the jars into `jars_folder`, unless they are there.

    They appear there all at once or not at all, in place of jars that were fetched before.

    :param force: Whether to fetch them even so.
    :raises CannotRunError: When `jars_folder` holds other files, there is no Maven, or it fails:
        with the first error that it tells.
    """
    target = jars_folder()
    if (target / _CONNECTOR).is_file() and not force:
        return connector_jars()
    _require_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spark-jars-", dir=target.parent) as folder:
        made = Path(folder) / "jars"
        _copy_dependencies(made)
        shutil.rmtree(target, ignore_errors=True)
        try:
            made.rename(target)
        except OSError as error:  # another one was faster
            if not (target / _CONNECTOR).is_file():
                raise CannotRunError(f"{target} cannot be written: {error}") from error
    return connector_jars()


def _require_replaceable(folder: Path) -> None:
    """Look whether a folder may be replaced: it is missing, empty, or holds a connector's jars.

    :raises CannotRunError: When it may not.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CannotRunError(f"{folder} is no folder: {JARS_VARIABLE} has to name one")
    others = [path.name for path in folder.iterdir() if path.suffix != ".jar"]
    if not others and not any(folder.glob(_ANY_CONNECTOR)):
        others = [path.name for path in folder.iterdir()]
    if others:
        raise CannotRunError(
            f"{folder} holds other files, such as {min(others)}, and would be replaced: "
            f"{JARS_VARIABLE} has to name a folder for the connector alone"
        )


def _copy_dependencies(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotRunError("Maven fetches the Kafka connector, and there is no mvn on the path")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command = [maven, "-B", "-q", "-f", str(CONNECTOR_POM), *goal, f"-DoutputDirectory={folder}"]
    try:
        ended = subprocess.run(  # noqa: S603  # a program, and no shell to read its options
            command, capture_output=True, text=True, check=False, timeout=_MAVEN_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise CannotRunError(f"Maven did not end in {_MAVEN_TIMEOUT_S} s") from None
    if ended.returncode:
        errors = [line for line in ended.stdout.splitlines() if line.startswith("[ERROR]")]
        reason = errors[0].removeprefix("[ERROR] ") if errors else f"exit code {ended.returncode}"
        raise CannotRunError(f"Maven cannot fetch the Kafka connector: {reason}")
