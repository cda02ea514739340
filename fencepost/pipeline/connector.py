"""Spark's Kafka connector: five jars that Maven fetches once, and a session is started with."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from fencepost.pipeline.requirements import SPARK_VERSION, CannotRunError

POM: Final = Path(__file__).with_name("connector.xml")
"""What Maven is to fetch."""
JARS_VARIABLE: Final = "FENCEPOST_SPARK_JARS"
"""The environment variable that names the folder of the jars."""
SETUP_COMMAND: Final = "fencepost spark setup"
_ANY_CONNECTOR: Final = "spark-sql-kafka-0-10_*.jar"
_CONNECTOR: Final = f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"
_TIMEOUT_S: Final = 600


def jars_folder() -> Path:
    """The folder of the jars: what `JARS_VARIABLE` names, or one in the user's cache."""
    chosen = os.environ.get(JARS_VARIABLE)
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    base = Path(cache) if cache else Path.home() / ".cache"
    return base / "fencepost" / f"spark-{SPARK_VERSION}-jars"


def is_installed() -> bool:
    """Whether the jars were fetched, for this version of Spark."""
    return (jars_folder() / _CONNECTOR).is_file()


def jars() -> list[Path]:
    """The jars, sorted by name. :raises CannotRunError: When they were never fetched."""
    if not is_installed():
        raise CannotRunError(f"no Kafka connector in {jars_folder()}: {SETUP_COMMAND}")
    return sorted(jars_folder().glob("*.jar"))


def fetch(*, force: bool = False) -> list[Path]:
    """Let Maven fetch the jars into `jars_folder`, unless they are there.

    They appear there all at once or not at all, in place of jars that were fetched before.

    :param force: Whether to fetch them even so.
    :raises CannotRunError: When `jars_folder` holds other files, there is no Maven, or it fails:
        with the first error that it tells.
    """
    target = jars_folder()
    if (target / _CONNECTOR).is_file() and not force:
        return jars()
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
    return jars()


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
    command = [maven, "-B", "-q", "-f", str(POM), *goal, f"-DoutputDirectory={folder}"]
    try:
        ended = subprocess.run(  # noqa: S603  # a program, and no shell to read its options
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise CannotRunError(f"Maven did not end in {_TIMEOUT_S} s") from None
    if ended.returncode:
        said = [line for line in ended.stdout.splitlines() if line.startswith("[ERROR]")]
        reason = said[0].removeprefix("[ERROR] ") if said else f"exit code {ended.returncode}"
        raise CannotRunError(f"Maven cannot fetch the Kafka connector: {reason}")
