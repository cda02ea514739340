"""Every API, draft and kind of fault has a test that names it: none is added without one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.faults.kinds import KINDS
from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.drafts import DRAFTS

TESTS: Final = Path(__file__).parent


def texts(folder: str) -> str:
    return "\n".join(path.read_text() for path in sorted((TESTS / folder).rglob("*.py")))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_api(api: Api) -> None:
    assert f"fencepost.protocol.messages.{api.name} " in texts("broker")


@pytest.mark.parametrize("name", DRAFTS)
def test_every_draft(name: str) -> None:
    constant = name.replace("-", "_").upper()
    found = texts("protocol") + texts("broker/server")
    assert f'"{name}"' in found or constant in found


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_of_fault(kind: type) -> None:
    assert f"{kind.__name__}(" in texts("broker/faults")
