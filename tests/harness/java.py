"""Kafka's own Java clients, tools and broker, fetched by Maven."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import Finished, run

HOME: Final = Path(__file__).parents[1] / "clients" / "java"
POM: Final = HOME / "pom.xml"
"""Kafka's clients, tools and broker."""

# A short life: little time to compile for, little memory to collect.
_QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")


@cache
def jars(pom: Path = POM, goal: str = "copy-dependencies") -> Path:
    """The folder of the jars that ``pom`` names; fetched once (about 15 s, 55 MB).

    :param goal: Of Maven's plugin for dependencies: ``copy`` takes what its configuration names.
    """
    tool("java")
    maven = tool("mvn")

    def fetch(folder: Path) -> None:
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        run([maven, "-B", "-q", "-f", str(pom), f"dependency:{goal}", *options], timeout_s=280)

    return made_once("java", [pom], fetch)


@cache
def class_archive() -> Path:
    """The classes of a broker and of a tool, loaded and checked, as the JVM maps them.

    Made once (about 10 s). With it a JVM starts in half the time; a JVM that is not the one that
    made it goes without.
    """
    program = tool("java")
    loader = HOME / "ArchivedClasses.java"

    def archive(folder: Path) -> None:
        options = [*_QUICK, f"-XX:ArchiveClassesAtExit={folder / 'classes.jsa'}"]
        served = folder / "served"
        served.mkdir()
        arguments = ["-cp", f"{jars()}/*", str(loader), str(served)]
        run([program, *options, *_logging("OFF"), *arguments], timeout_s=200)
        shutil.rmtree(served)

    version = run([program, "-version"]).err
    digest = hashlib.sha256(version.encode()).hexdigest()[:8]
    return made_once(f"java-{digest}", [POM, loader], archive) / "classes.jsa"


def command(
    *arguments: str,
    options: tuple[str, ...] = _QUICK,
    log_level: str = "WARN",
    folders: Sequence[Path] = (),
    poms: Sequence[Path] = (POM,),
) -> list[str]:
    """``java`` with jars on its class path: a class or source file, and its arguments.

    :param folders: Where there are more classes.
    :param poms: Of the jars. Where `POM` is the first, the JVM maps its classes from the archive.
    """
    archive = [f"-XX:SharedArchiveFile={class_archive()}"] if poms[0] == POM else []
    path = os.pathsep.join([_class_path(poms), *map(str, folders)])
    return [tool("java"), *options, *archive, *_logging(log_level), "-cp", path, *arguments]


def _class_path(poms: Sequence[Path]) -> str:
    return os.pathsep.join(f"{jars(each)}/*" for each in poms)


def _logging(level: str) -> list[str]:
    return [f"-Dlog4j2.configurationFile={HOME / 'log4j2.properties'}", f"-Dlog.level={level}"]


def java(*arguments: str, stdin: str = "", timeout_s: float = 90, code: int | None = 0) -> Finished:
    """Run a class to its end."""
    return run(command(*arguments), stdin=stdin, timeout_s=timeout_s, code=code)


def story_command(
    name: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    log_level: str = "WARN",
    poms: Sequence[Path] = (POM,),
) -> list[str]:
    """A single-file program of ``tests/clients/java``, compiled once (about 2 s).

    :param options: More options of the JVM.
    :param poms: Of the jars that it is compiled and run with.
    """
    return command(
        name,
        *arguments,
        options=(*_QUICK, *options),
        log_level=log_level,
        folders=[compiled(f"{name}.java", poms=poms)],
        poms=poms,
    )


def compiled(*names: str, poms: Sequence[Path] = (POM,)) -> Path:
    """The folder of the classes of these sources of ``tests/clients/java``.

    :param poms: Of the jars that they are compiled with.
    """
    sources = [HOME / name for name in names]

    def compile_sources(folder: Path) -> None:
        run([tool("javac"), "-cp", _class_path(poms), "-d", str(folder), *map(str, sources)])

    return made_once(names[0].removesuffix(".java"), [*poms, *sources], compile_sources)


def story(name: str, *arguments: str, timeout_s: float = 90) -> Finished:
    """Run a single-file program of ``tests/clients/java`` to its end."""
    return run(story_command(name, *arguments), timeout_s=timeout_s)
