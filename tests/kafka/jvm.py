"""The JVMs that run Kafka's test classes: their jars, our Java classes, what a JVM says."""

from __future__ import annotations

import os
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

from tests.harness import java
from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = Path(__file__).parent
POM: Final = HOME / "pom.xml"
ARTIFACTS: Final = ("kafka-clients-integration-tests", "kafka-tools")
"""The jars of Kafka's that have cluster tests."""
TIMEOUT_S: Final = 60
"""What a test may take; then its thread is interrupted."""

_ANNOTATION: Final = b"Lorg/apache/kafka/common/test/api/ClusterTe"
"""How the annotations of cluster tests begin in a class file."""
_WITHOUT_CLUSTER: Final = frozenset({"org/apache/kafka/tools/TransactionsCommandTest.class"})
"""Class files that are run besides: Kafka has no other test of ``kafka-transactions``. They ask a
mock, so they say that the tool works in this JVM, and nothing of the brokers.
"""
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


@cache
def test_classes(artifact: str) -> tuple[str, ...]:
    """The names of an artifact's classes that are run, those with most code first."""
    (jar,) = java.jars(POM).glob(f"{artifact}-[0-9]*-test.jar")
    with zipfile.ZipFile(jar) as archive:
        files = sorted(archive.infolist(), key=lambda each: -each.file_size)
        return tuple(
            each.filename.removesuffix(".class").replace("/", ".")
            for each in files
            if each.filename in _WITHOUT_CLUSTER
            or (each.filename.endswith("Test.class") and _ANNOTATION in archive.read(each))
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
