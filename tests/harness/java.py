"""Kafka's own Java clients, tools and broker, fetched by Maven."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import Finished, run

HOME: Final = Path(__file__).parents[1] / "clients" / "java"

# A short life: little time to compile for, little memory to collect.
_QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")


@cache
def jars(pom: Path = HOME / "pom.xml") -> Path:
    """The folder of the jars that ``pom`` names; fetched once (about 15 s, 55 MB)."""
    tool("java")
    maven = tool("mvn")

    def fetch(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command = [maven, "-B", "-q", "-f", str(pom), *goal, f"-DoutputDirectory={folder}"]
        run(command, timeout_s=280)

    return made_once("java", [pom], fetch)


def command(
    *arguments: str, options: tuple[str, ...] = _QUICK, log_level: str = "WARN"
) -> list[str]:
    """``java`` with the jars on its class path: a class or source file, and its arguments."""
    logging = [
        f"-Dlog4j2.configurationFile={HOME / 'log4j2.properties'}",
        f"-Dlog.level={log_level}",
    ]
    return [tool("java"), *options, *logging, "-cp", f"{jars()}/*", *arguments]


def java(*arguments: str, stdin: str = "", timeout_s: float = 90, code: int | None = 0) -> Finished:
    """Run a class to its end."""
    return run(command(*arguments), stdin=stdin, timeout_s=timeout_s, code=code)


def story(name: str, *arguments: str, timeout_s: float = 90) -> Finished:
    """Run a single-file program of ``tests/clients/java``."""
    return java(str(HOME / f"{name}.java"), *arguments, timeout_s=timeout_s)
