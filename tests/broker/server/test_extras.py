"""An extra is had from where the package was had from."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from typing import NoReturn

import pytest

from fencepost.broker.server import extras


class Installed:
    """A package, and where pip says that it came from."""

    def __init__(self, origin: object) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._origin is None else json.dumps(self._origin)


@pytest.mark.parametrize(
    ("origin", "arguments"),
    [
        (
            {"url": "file:///my%20code/fencepost", "dir_info": {"editable": True}},
            "--editable '/my code/fencepost[spark]'",
        ),
        (
            {"url": "file:///code/fencepost", "dir_info": {}},
            "'fencepost[spark] @ file:///code/fencepost'",
        ),
        (
            {"url": "file:///dist/fencepost-1-py3-none-any.whl", "archive_info": {}},
            "'fencepost[spark] @ file:///dist/fencepost-1-py3-none-any.whl'",
        ),
        (None, "'fencepost[spark]'"),
    ],
    ids=["in place", "folder", "wheel", "index"],
)
def test_an_extra_comes_from_where_the_package_came_from(
    origin: object, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "distribution", lambda _name: Installed(origin))
    command = extras.install_command("spark")
    assert command == f"{sys.executable} -m pip install {arguments}"


def test_a_copy_that_is_not_installed_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> NoReturn:
        raise PackageNotFoundError

    monkeypatch.setattr(extras, "distribution", nothing)
    assert extras.install_command("tier").endswith(" -m pip install 'fencepost[tier]'")
