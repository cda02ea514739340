"""Which of Kafka's tests are run: all of its jars with cluster tests that can meet fencepost."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.harness import java
from tests.kafka.jvm import POM

ARTIFACTS: Final = ("kafka-clients-integration-tests", "kafka-tools")
"""The jars of Kafka's that have tests with clusters. What else they test is run with them: it says
that a tool works in this JVM, and nothing of the brokers."""
NOT_RUN: Final[Mapping[str, str]] = {
    "ConnectPluginPathTest": "wants the classes of Kafka Connect",
    "DumpLogSegmentsTest#testDumpRemoteLogMetadataIoException": (
        "wants a file that its user may not read: root may"
    ),
    "EndToEndLatencyTest#testInvalidArgs": (
        "waits for a minute for a broker that is not there, as long as a test may take"
    ),
    "JmxToolTest": "registers a name in its JVM that other tests before it have registered",
    "LeaderElectionCommandErrorTest#testInvalidBroker": "wants the name example.com to resolve",
}
"""Classes and tests that ask no broker and depend on the machine or the JVM, and on what."""

_ANNOTATIONS: Final = (b"Lorg/apache/kafka/common/test/api/ClusterTe", b"Lorg/junit/jupiter/")
"""How the annotations of tests begin in a class file: of those with a cluster, and of others."""
_OWN_BROKERS: Final = (b"/EmbeddedKafkaCluster", b"kafka/api/Abstract")
"""What a class file names that starts Kafka's own brokers in its JVM, and never meets fencepost."""


@cache
def classes_of(artifact: str) -> tuple[str, ...]:
    """The names of an artifact's classes that are run, those with most code first."""
    (jar,) = java.jars(POM).glob(f"{artifact}-[0-9]*-test.jar")
    with zipfile.ZipFile(jar) as archive:
        files = sorted(archive.infolist(), key=lambda each: -each.file_size)
        names = (
            each.filename.removesuffix(".class").replace("/", ".")
            for each in files
            if each.filename.endswith("Test.class") and _is_run(archive.read(each))
        )
        return tuple(name for name in names if simple_name(name) not in NOT_RUN)


def methods_not_run(class_name: str) -> frozenset[str]:
    """Those of a class that is run."""
    tests = (test.partition("#") for test in NOT_RUN)
    return frozenset(method for name, _, method in tests if name == simple_name(class_name))


def simple_name(class_name: str) -> str:
    """The name of a class without its package."""
    return class_name.rpartition(".")[2]


def _is_run(class_file: bytes) -> bool:
    """Whether it has tests, and starts no brokers of its own."""
    return any(name in class_file for name in _ANNOTATIONS) and not any(
        name in class_file for name in _OWN_BROKERS
    )
