"""docker-compose.yml, up and down: its services answer, and those of the profile s3 have a tier."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.harness.compose import up
from tests.harness.container import Engine

pytestmark = pytest.mark.timeout(600)
TOKEN: Final = "a-token-of-the-test"
TOPIC: Final = ("orders:1:3,remote.storage.enable=true",)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("engine"))


def test_the_profile_s3_is_up_with_a_tier_and_down_again(engine: Engine) -> None:
    variables = {"FENCEPOST_CONTROL_TOKEN": TOKEN}
    with up(engine, profile="s3", variables=variables) as composed:
        assert set(composed.containers) == {"fencepost", "s3", "fencepost-s3"}
        for service in ("fencepost", "fencepost-s3"):
            lines = composed.run(service, "check", "--bootstrap", f"{service}:9092").splitlines()
            assert [line.rpartition(" ")[2] for line in lines] == ["answers"] * 4
        tiered = composed.containers["fencepost-s3"]
        for command in (
            ("topic", "create", *TOPIC),
            ("records", "produce", "orders", "--value", "two posts"),
            ("roll", "orders", "0"),
        ):
            tiered.execute("fencepost", *command, "--control-token", TOKEN)
        upload = ("tier", "upload", "orders", "0", "--json", "--control-token", TOKEN)
        uploaded = json.loads(tiered.execute("fencepost", *upload).out)["uploaded"]
        assert [(each["start_offset"], each["end_offset"]) for each in uploaded] == [(0, 0)]
        network = composed.network
        ids = [each.id for each in composed.containers.values()]
    assert engine.podman("network", "exists", network, code=None).code == 1
    left = engine.podman("ps", "--all", "--no-trunc", "--quiet").lines
    assert not set(ids) & set(left)
