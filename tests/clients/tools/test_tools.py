"""Each of Kafka's command-line tools prints what it prints at a real 4.3.1.

``FENCEPOST_TOOLS_ON=kafka`` runs them on a real one instead, which is where sessions are from.
"""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.clients.tools.playing import Ground, check
from tests.clients.tools.session import Session, sessions
from tests.clients.tools.tools import NOT_RUN, TOOLS
from tests.harness.cache import made_once
from tests.harness.java import HOME, jars
from tests.harness.require import tool
from tests.harness.run import run


@pytest.mark.parametrize("session", sessions(), ids=lambda session: session.name)
def test_a_tool_prints_what_it_prints_at_a_real_kafka(brokers: Ground, session: Session) -> None:
    check(session, brokers)


def main_classes() -> set[str]:
    """The classes of Kafka's jars that ``java`` can run; looked for once (about 10 s)."""

    def look(folder: Path) -> None:
        own = [*jars().glob("kafka*.jar"), *jars().glob("connect*.jar")]
        found = sorted(name for jar in own for name in _main_classes(jar))
        (folder / "classes").write_text("\n".join(found))

    pom = HOME / "pom.xml"
    return set((made_once("main-classes", [pom], look) / "classes").read_text().split())


def _main_classes(jar: Path) -> list[str]:
    with ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.endswith(".class")]
        likely = [name for name in names if b"\x00\x04main" in archive.read(name)]
    if not likely:
        return []
    classes = [name.removesuffix(".class").replace("/", ".") for name in likely]
    shown = run([tool("javap"), "-cp", str(jar), "-public", *classes]).out
    pieces = re.findall(r"class (\S+)[^{]*\{(.*?)\n\}", shown, re.DOTALL)
    return [name for name, body in pieces if "static void main(java.lang.String" in body]


def test_every_main_class_of_kafkas_jars_is_run_or_has_a_reason_not_to_be() -> None:
    assert main_classes() == {*TOOLS.values(), *NOT_RUN}


def test_every_tool_has_a_session() -> None:
    assert {session.tool for session in sessions()} == TOOLS.keys()
