"""Kafka's own tool raises and lowers ``metadata.version``, and clients live with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from fencepost.broker.metadata.features import SUPPORTED
from tests.harness.confluent import delivered, read_partition, send
from tests.harness.kafka_tools import kafka_tool
from tests.harness.run import Finished
from tests.harness.served_cluster import Cluster, given, serving, unique

TOOL: Final = "org.apache.kafka.tools.FeatureCommand"
NAME: Final = "metadata.version"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own: the level is that of all who use it."""
    if given() is not None:
        pytest.skip("the given cluster's features are not ours to change")
    with serving(tmp_path_factory.mktemp("features") / "fencepost.log", brokers=2) as started:
        yield started


def features(cluster: Cluster, *arguments: str, code: int = 0) -> Finished:
    """Kafka's ``kafka-features``."""
    return kafka_tool(TOOL, "--bootstrap-server", cluster.bootstrap, *arguments, code=code)


def described(cluster: Cluster) -> dict[str, str]:
    """What the tool says of the feature, by its own words but for the epoch."""
    lines = [line.split() for line in features(cluster, "describe").out.splitlines()]
    assert [words[1] for words in lines] == sorted(SUPPORTED)
    (words,) = (words for words in lines if words[1] == NAME)
    assert words[-2] == "Epoch:"
    assert int(words[-1]) > 0
    return dict(zip(words[:-2:2], words[1:-2:2], strict=True))


def list_offsets(cluster: Cluster) -> int:
    """The highest version that is advertised."""
    with cluster.connect() as connection:
        keys = connection.call("ApiVersions", 0, {})["ApiKeys"]
    return next(int(each["MaxVersion"]) for each in keys if each["ApiKey"] == 2)


def test_kafkas_tool_describes_raises_and_lowers_the_level(cluster: Cluster) -> None:
    newest = {
        "Feature:": NAME,
        "SupportedMinVersion:": "3.3-IV3",
        "SupportedMaxVersion:": "4.3-IV0",
        "FinalizedVersionLevel:": "4.3-IV0",
    }
    assert described(cluster) == newest
    refused = features(cluster, "downgrade", "--feature", f"{NAME}=28", code=1)
    assert "it might delete metadata information" in refused.out
    features(cluster, "downgrade", "--unsafe", "--feature", f"{NAME}=28")
    assert described(cluster) == newest | {"FinalizedVersionLevel:": "4.2-IV0"}
    dry = features(cluster, "downgrade", "--metadata", "4.1-IV1", "--dry-run")
    assert f"{NAME} can be downgraded to 27." in dry.out
    assert described(cluster)["FinalizedVersionLevel:"] == "4.2-IV0"
    features(cluster, "upgrade", "--metadata", "4.3-IV0")
    assert described(cluster) == newest


def test_an_unknown_feature_is_refused(cluster: Cluster) -> None:
    refused = features(cluster, "upgrade", "--feature", "nope=1", code=1)
    assert "does not support this feature" in refused.out


def test_clients_live_with_a_lower_level(cluster: Cluster) -> None:
    topic = unique("lowered")
    features(cluster, "downgrade", "--unsafe", "--feature", f"{NAME}=28")
    try:
        assert list_offsets(cluster) == 10
        assert delivered(send(cluster, topic, [b"a", b"b"])) == [0, 1]
        assert [message.value() for message in read_partition(cluster, topic, 2)] == [b"a", b"b"]
    finally:
        features(cluster, "upgrade", "--feature", f"{NAME}=30")
    assert list_offsets(cluster) == 11
