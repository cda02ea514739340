from __future__ import annotations

import pytest

from fencepost.scenario.cluster_requirements import RequirementsNotMet, check_requirements
from fencepost.verbs.remote import Unreachable
from fencepost.verbs.serving import ClusterBody


async def test_a_cluster_that_fits(url: str) -> None:
    configs = {"min.insync.replicas": "1", "list.offsets.gate": "kip"}
    await check_requirements(ClusterBody(brokers=3, configs=configs, api_max={"fetch": 18}), url)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (ClusterBody(brokers=1), "it has 3 brokers, and 1 are wanted"),
        (
            ClusterBody.model_validate({"broker_ids": [2, 0, 1]}),
            "its brokers are 1, 2, 3, and 0, 1, 2 are wanted",
        ),
        (ClusterBody(brokers=3, clock="manual"), "its clock is real, and a manual one is wanted"),
        (
            ClusterBody(brokers=3, dialect="kip-320-draft"),
            "its dialect is none, and kip-320-draft is wanted",
        ),
        (
            ClusterBody(brokers=3, configs={"list.offsets.gate": "off"}),
            "list.offsets.gate is kip, and off is wanted",
        ),
        (
            ClusterBody(brokers=3, api_max={"list-offsets": 4}),
            "it serves ListOffsets up to version 11, and 4 is wanted",
        ),
        (
            ClusterBody(brokers=3, like_kafka="2.0"),
            "it serves Produce up to version 13, and 6 is wanted; it serves Fetch up to",
        ),
        (ClusterBody(brokers=3, like_kafka="old"), "is not a release of Kafka"),
        (ClusterBody(brokers=3, api_max={"fetsh": 4}), "there is no API 'fetsh'"),
    ],
)
async def test_a_cluster_that_does_not(url: str, wanted: ClusterBody, told: str) -> None:
    with pytest.raises(RequirementsNotMet) as caught:
        await check_requirements(wanted, url)
    assert str(caught.value).startswith(f"the cluster at {url} does not fit: {told}")


async def test_nobody_is_there() -> None:
    with pytest.raises(Unreachable):
        await check_requirements(ClusterBody(), "http://127.0.0.1:1")
