"""The store's README, done by the letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from docs.generate import ROOT
from tests.harness.in_process_server import HOST, sockets
from tests.harness.pages import Reader, reader

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["reader"]

PAGE: Final = (ROOT / "examples" / "kvstore" / "README.md").read_text()
PORTS: Final = ("7001", "7002", "7003")


class Visitor(Reader):
    """A reader who follows the page where its ports may be taken by others."""

    ports: tuple[str, ...] = ()

    def type(self, command: str, shown: str = "") -> None:
        for port, free in zip(PORTS, self.ports, strict=False):
            command, shown = command.replace(port, free), shown.replace(port, free)
        super().type(command, shown)

    def _serve(self, *commands: str) -> None:
        super()._serve(*commands)
        self.type(f"export KVSTORE_BOOTSTRAP={','.join(self.brokers)}")
        self.type(f"export KVSTORE_NODES={HOST}:{self.ports[0]},{HOST}:{self.ports[1]}")


@pytest.fixture
def visitor(reader: Reader, tmp_path: Path) -> Iterator[Visitor]:  # a fixture
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    made = Visitor(folder=reader.folder, terminal=reader.terminal)
    taken = sockets(len(PORTS))
    made.ports = tuple(str(sock.getsockname()[1]) for sock in taken)
    for sock in taken:
        sock.close()
    yield made
    made.terminal.say("kill -9 $(jobs -p)")
    if made.served is not None:
        made.served.stop()


@pytest.mark.timeout(300)
def test_the_page_does_what_it_says(visitor: Visitor) -> None:
    visitor.follow(PAGE)
    assert visitor.served is not None
    assert PAGE.count("```console") == PAGE.count("<!-- run -->") + PAGE.count("<!-- serve -->")
