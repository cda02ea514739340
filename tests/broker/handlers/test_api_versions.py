"""ApiVersions: the table, and who asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.handlers import api_versions
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.apis import APIS, BY_NAME, NOT_SERVED, release_ceilings
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.driver import Driver, versions
from tests.protocol.test_apis_releases import RECORDED

UNASKED = [api for api in APIS if api.name not in api_versions.TELEMETRY]
"""The APIs that are told of where telemetry is not asked for."""


@pytest.mark.parametrize("version", versions("api_versions"))
def test_every_version_lists_what_is_served(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = Driver(1).ask(1, "api_versions", version, request)
    assert answer.error_code == ErrorCode.NONE
    assert [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys] == [
        (api.key, api.advertised_min, api.max_version) for api in UNASKED
    ]


def telemetry(driver: Driver) -> list[int]:
    answer = driver.ask(1, "api_versions", 2, ApiVersionsRequest())
    return [each.api_key for each in answer.api_keys if each.api_key in (71, 72)]


@pytest.mark.parametrize("limits", [{}, {"fetch": 8}])
def test_telemetry_is_there_while_there_is_a_subscription(limits: dict[str, int]) -> None:
    driver = Driver(1, api_max=limits)
    assert telemetry(driver) == []
    driver.cluster.controller.set_client_metrics_configs("s", {"metrics": "*"})
    assert telemetry(driver) == [71, 72]
    driver.cluster.controller.set_client_metrics_configs("s", {})
    assert telemetry(driver) == []


def test_telemetry_is_there_where_a_metrics_reporter_receives_it() -> None:
    assert telemetry(Driver(1, {"metric.reporters": "com.example.Receiver"})) == [71, 72]
    default = "org.apache.kafka.common.metrics.JmxReporter"
    assert telemetry(Driver(1, {"metric.reporters": default})) == []
    apache = Driver(1, conformance=Conformance.APACHE)
    apache.cluster.controller.set_client_metrics_configs("s", {"metrics": "*"})
    assert telemetry(apache) == [], "as at a real broker a subscription alone is not enough"


def test_versions_that_kafka_calls_unstable_are_not_served_as_it_does_not() -> None:
    def highest(driver: Driver) -> int:
        answer = driver.ask(1, "api_versions", 2, ApiVersionsRequest())
        (found,) = (each.max_version for each in answer.api_keys if each.api_key == 22)
        assert isinstance(found, int)
        return found

    assert highest(Driver(1)) == BY_NAME["init_producer_id"].max_version == 6
    assert highest(Driver(1, conformance=Conformance.APACHE)) == 5
    assert highest(Driver(1, conformance=Conformance.APACHE, api_max={"init_producer_id": 6})) == 6
    unstable = {"unstable.api.versions.enable": "true"}
    assert highest(Driver(1, unstable, conformance=Conformance.APACHE)) == 6


def test_a_new_version_is_tested_because_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    known = BY_NAME["offset_for_leader_epoch"]
    newer = replace(known, max_version=known.max_version + 1)
    monkeypatch.setitem(BY_NAME, known.name, newer)
    assert list(versions(known.name)) == [v for v in range(99) if newer.serves(v)]
    assert list(versions(known.name, first=newer.max_version)) == [newer.max_version]


def test_a_ceiling_is_told_and_leaves_the_others_as_they_are() -> None:
    driver = Driver(2, api_max={"fetch": 8, "produce": 3})
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = driver.ask(2, "api_versions", 3, request)
    served = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
    expected = {api.key: (api.advertised_min, api.max_version) for api in UNASKED}
    assert served == expected | {1: (4, 8), 0: (0, 3)}


def test_what_a_release_did_not_have_is_not_told_of() -> None:
    driver = Driver(1, api_max=release_ceilings("2.0"))
    answer = driver.ask(1, "api_versions", 2, ApiVersionsRequest())
    served = {a.api_key: a.max_version for a in answer.api_keys}
    assert served[BY_NAME["fetch"].key] == 8
    recorded = RECORDED["2.0"]
    assert {api.key for api in UNASKED} - served.keys() == {
        api.key for api in UNASKED if recorded.get(api.key, NOT_SERVED) < api.min_version
    }
    assert BY_NAME["offset_for_leader_epoch"].key in recorded.keys() - served.keys()


@pytest.mark.parametrize(
    ("name", "version", "good"),
    [
        ("librdkafka", "2.16.0-rc1", True),
        ("a", "1", True),
        ("", "1", False),
        ("x", "", False),
        ("-x", "1", False),
        ("x.", "1", False),
        ("x y", "1", False),
        ("x\n", "1", False),
    ],
)
def test_software_must_look_like_software(name: str, version: str, good: bool) -> None:
    driver = Driver(1)
    peer = Peer(connection_id="c", host="h")
    ctx = Context(
        broker=driver.broker(1), version=3, client_id=None, peer=peer, now_ms=0, wall_ms=0
    )
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = api_versions.handle(ctx, request)
    assert answer.error_code == (ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST)
    known = (peer.software_name, peer.software_version)
    assert known == ((name, version) if good else ("unknown", "unknown"))


def test_an_unsupported_version_is_told_those_of_this_api() -> None:
    answer = api_versions.refuse(ApiVersionsRequest(), ErrorCode.UNSUPPORTED_VERSION)
    (own,) = answer.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, max(versions("api_versions")))
    assert api_versions.refuse(ApiVersionsRequest(), ErrorCode.INVALID_REQUEST).api_keys == ()


def test_and_of_its_own_ceiling() -> None:
    answer = api_versions.refuse_version(Driver(1, api_max={"api_versions": 2}).broker(1))
    (own,) = answer.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 2)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
