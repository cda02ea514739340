"""The JVMs that run Kafka's test classes: their jars, our Java classes, what a JVM says."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tests.harness import java
from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = Path(__file__).parent
POM: Final = HOME / "pom.xml"
TIMEOUT_S: Final = 60
"""What a test may take; then its thread is interrupted."""

_EXTENSION: Final = "org.apache.kafka.common.test.junit.ClusterTestExtensions"
_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Xshare:auto",
    # A connection that is kept for the next request has a thread, which looks like a leak.
    "-Dhttp.keepAlive=false",
    "-Djunit.jupiter.extensions.autodetection.enabled=true",
    f"-Djunit.jupiter.execution.timeout.testable.method.default={TIMEOUT_S}s",
)


def command(folder: Path) -> list[str]:
    """A JVM that runs the classes whose names it reads (``SuiteRunner.java``).

    :param folder: Where it, and the processes that it starts, leave files.
    """
    path = os.pathsep.join([str(_compiled()), f"{java.jars(POM)}/*"])
    properties = [f"-Dfencepost.python={sys.executable}", f"-Djava.io.tmpdir={folder}"]
    return [tool("java"), *_OPTIONS, *properties, "-cp", path, "fencepost.SuiteRunner"]


@cache
def _compiled() -> Path:
    """Our Java classes, and the file by which JUnit finds Kafka's extension."""
    compiler, libraries = tool("javac"), java.jars(POM)
    sources = sorted((HOME / "java").rglob("*.java"))

    def compile_sources(folder: Path) -> None:
        options = ["-Xlint:all,-classfile,-path", "-Werror", "-cp", f"{libraries}/*"]
        run([compiler, *options, "-d", str(folder), *map(str, sources)])
        services = folder / "META-INF" / "services"
        services.mkdir(parents=True)
        (services / "org.junit.jupiter.api.extension.Extension").write_text(f"{_EXTENSION}\n")

    return made_once("kafka-tests", [POM, *sources], compile_sources)
