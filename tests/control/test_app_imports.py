"""A verb costs the modules that it needs, and no others: tests of users wait for the first one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_CODE: Final = """
import asyncio, json, sys
import httpx
before = set(sys.modules)
from fencepost.control.app import create_app
from tests.harness.in_process_server import running

async def main():
    async with running() as server:
        transport = httpx.ASGITransport(create_app(server))
        async with httpx.AsyncClient(transport=transport, base_url="http://control") as client:
            for method, path, body in json.loads(sys.argv[1]):
                answer = await client.request(method, path, json=body)
                assert answer.is_success, answer.text
    print(json.dumps(sorted(set(sys.modules) - before)))

asyncio.run(main())
"""
CREATE: Final = ["POST", "/v1/topics", {"name": "t", "replication_factor": 3}]


def imported_by(*asked: Sequence[object]) -> set[str]:
    """What a cluster and its control API import for these requests."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_topic_is_created_without_the_routes_and_models_of_other_verbs() -> None:
    found = imported_by(CREATE)
    assert "fencepost.control.routes_cluster" in found
    of_others = {"events", "faults", "groups", "journal", "records", "tier", "verify"}
    assert not {f"fencepost.control.routes_{name}" for name in of_others} & found
    assert not {"fencepost.verbs.record_bodies", "fencepost.verbs.answers.groups"} & found
    assert not {"rich", "pydantic", "prometheus_client", "fencepost.control.openapi"} & found


def test_another_verb_imports_its_own() -> None:
    read = ["GET", "/v1/topics/t/partitions/0/records", None]
    assert "fencepost.control.routes_records" in imported_by(CREATE, read)
