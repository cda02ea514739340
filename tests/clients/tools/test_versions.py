"""kafka-clients from 0.11 on get what they get at a real Kafka 4.3.1, refusals as well (KIP-896).

``FENCEPOST_TOOLS_ON=kafka`` runs them on a real one.
"""

from __future__ import annotations

import re
from typing import Final

from tests.clients.tools.playing import Ground
from tests.harness.java import HOME, command, compiled, jars
from tests.harness.run import run
from tests.harness.served_cluster import unique

POM: Final = HOME / "versions" / "pom.xml"
STEPS: Final = {
    "create": "null",
    "list": "true",
    "cluster": "3",
    "configs": "delete",
    "produce none": "0",
    "produce idempotent": "1",
    "offsets": "2",
    "time": "0",
    "consume": "[none, idempotent]",
    "partitions": "null",
    "delete": "null",
}
"""What VersionSteps does, and how it goes."""
REFUSED: Final = {
    "0.11.0.3": "The broker is too new to support DESCRIBE_CONFIGS version 0",
    "1.0.2": "The broker does not support DESCRIBE_CONFIGS with version in range [0,0]. "
    "The supported range is [1,4].",
}
"""Those that have no version of DescribeConfigs that Kafka 4 knows."""


def test_clients_of_all_years_get_what_they_get_at_a_real_kafka(brokers: Ground) -> None:
    folder = compiled("VersionStory.java", "VersionSteps.java")
    clients = jars(POM, goal="copy")
    story = command("VersionStory", folders=[folder])
    done = run([*story, ",".join(brokers.brokers), str(clients), f"{unique('versions')}-"])
    printed: dict[str, dict[str, str]] = {}
    for line in done.lines:
        version, rest = line.split(" ", 1)
        step, outcome = rest.split(": ", 1)
        printed.setdefault(version, {})[step] = outcome
    versions = re.findall(r"<version>([\d.]+\d)</version>", POM.read_text().partition("<build>")[2])
    assert printed == {version: expected(version) for version in versions}


def expected(version: str) -> dict[str, str]:
    steps = dict(STEPS)
    if version in REFUSED:
        steps["configs"] = f"UnsupportedVersionException: {REFUSED[version]}"
    if version.startswith("0."):
        del steps["partitions"]  # its AdminClient has no such method
    return steps
