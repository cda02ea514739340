"""UpdateFeatures: the levels that are finalized, and what becomes of what they guard."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    LATEST_PRODUCTION,
    METADATA_VERSION,
    PENDING_UPLOAD,
    TRANSACTION_VERSION,
    MetadataVersion,
    UpgradeType,
)
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.harness.driver import NEWEST, Driver, Message, versions
from tests.harness.driver_requests import create

LOWEST: Final = min(MetadataVersion)
HIGHEST: Final = LATEST_PRODUCTION
FAILED: Final = (
    "The update failed for all features since the following feature had an error: "
    "Invalid update version {} for feature {}. {}"
)


def update(
    driver: Driver,
    *asked: tuple[str, int, int],
    version: int = NEWEST,
    validate_only: bool = False,
    broker_id: int = 1,
) -> Message:
    """Ask for levels: name, level and type of each."""
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in asked
        ),
        validate_only=validate_only,
    )
    return driver.ask(broker_id, "update_features", version, request)


def lower(driver: Driver, level: int = 28) -> None:
    asked = (METADATA_VERSION, level, UpgradeType.UNSAFE_DOWNGRADE)
    assert update(driver, asked).error_code == ErrorCode.NONE


def told(driver: Driver, broker_id: int = 1, version: int = 4) -> Message:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    return driver.ask(broker_id, "api_versions", version, request)


def level(driver: Driver, broker_id: int = 1) -> int:
    return levels(driver, broker_id)[METADATA_VERSION]


def levels(driver: Driver, broker_id: int = 1) -> dict[str, int]:
    """The finalized ones."""
    finalized = told(driver, broker_id).finalized_features
    assert all(each.min_version_level == each.max_version_level for each in finalized)
    return {each.name: each.max_version_level for each in finalized}


def list_offsets(driver: Driver, broker_id: int = 1) -> int:
    keys = told(driver, broker_id).api_keys
    return next(int(k.max_version) for k in keys if k.api_key == BY_NAME["list_offsets"].key)


def test_what_is_supported_and_finalized_is_told() -> None:
    driver = Driver(1)
    supported = told(driver).supported_features
    assert {f.name: (f.min_version, f.max_version) for f in supported} == {
        KRAFT_VERSION: (0, 1),
        METADATA_VERSION: (LOWEST, HIGHEST),
        ELR_VERSION: (0, 1),
        TRANSACTION_VERSION: (0, 2),
    }
    assert levels(driver) == {
        KRAFT_VERSION: 1,
        METADATA_VERSION: HIGHEST,
        ELR_VERSION: 1,
        TRANSACTION_VERSION: 2,
    }


def test_an_old_version_tells_of_no_feature_that_may_be_off() -> None:
    driver = Driver(1)
    answer = told(driver, version=3)
    assert [f.name for f in answer.supported_features] == [METADATA_VERSION]
    assert len(answer.finalized_features) == len(levels(driver))


def test_a_feature_that_is_off_is_not_finalized() -> None:
    driver = Driver(2)
    assert update(driver, (ELR_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)).error_code == 0
    assert levels(driver) == levels(driver, 2)
    assert ELR_VERSION not in levels(driver)
    assert update(driver, (ELR_VERSION, 1, UpgradeType.UPGRADE)).error_code == 0
    assert levels(driver)[ELR_VERSION] == 1


def test_without_eligible_replicas_the_last_one_in_sync_stays_in_the_isr() -> None:
    driver = Driver(2)
    create(driver, "t", [(2,)])
    asked = (ELR_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)
    assert update(driver, asked).error_code == ErrorCode.NONE
    operator_actions.kill(driver.cluster, 2)
    (partition,) = driver.cluster.controller.image.topics["t"].partitions
    assert (partition.leader, partition.isr, partition.elr) == (-1, (2,), ())
    assert partition.last_known_elr == ()
    operator_actions.start(driver.cluster, 2)
    (partition,) = driver.cluster.controller.image.topics["t"].partitions
    assert (partition.leader, partition.isr) == (2, (2,))


def test_the_kraft_version_never_goes_back() -> None:
    driver = Driver(1)
    for kind in (UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
        answer = update(driver, (KRAFT_VERSION, 0, kind))
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message == FAILED.format(
            0, KRAFT_VERSION, "Can't downgrade the version of this feature."
        )
    assert levels(driver)[KRAFT_VERSION] == 1


def test_every_broker_knows_the_new_level_and_a_newer_epoch() -> None:
    driver = Driver(2)
    before = told(driver).finalized_features_epoch
    lower(driver)
    assert level(driver, 1) == level(driver, 2) == 28
    assert told(driver).finalized_features_epoch == told(driver, 2).finalized_features_epoch
    assert told(driver).finalized_features_epoch > before


def test_a_broker_that_heard_nothing_of_it_goes_on_as_before() -> None:
    driver = Driver(2)
    operator_actions.isolate(driver.cluster, 2, from_controller=True, fence=Fence.NEVER)
    lower(driver)
    assert (level(driver, 2), list_offsets(driver, 2)) == (HIGHEST, 11)
    assert update(driver, (METADATA_VERSION, HIGHEST, 1), broker_id=2).error_code == (
        ErrorCode.REQUEST_TIMED_OUT
    )
    operator_actions.rejoin(driver.cluster, 2)
    assert (level(driver, 2), list_offsets(driver, 2)) == (28, 10)


@pytest.mark.parametrize("asked", [each for each in MetadataVersion if each <= HIGHEST])
def test_list_offsets_goes_as_far_as_the_level_lets_it(asked: MetadataVersion) -> None:
    driver = Driver(2)
    lower(driver, asked)
    assert (level(driver, 1), level(driver, 2)) == (asked, asked)
    assert list_offsets(driver, 2) == (11 if asked >= PENDING_UPLOAD else 10)
    assert update(driver, (METADATA_VERSION, HIGHEST, 1)).error_code == ErrorCode.NONE
    assert (level(driver, 2), list_offsets(driver, 2)) == (HIGHEST, 11)
    assert driver.cluster.network.version(2, BY_NAME["list_offsets"]) == 11


def test_a_restarted_broker_serves_what_the_level_says() -> None:
    driver = Driver(2)
    operator_actions.stop(driver.cluster, 2)
    lower(driver)
    operator_actions.start(driver.cluster, 2)
    assert (level(driver, 2), list_offsets(driver, 2)) == (28, 10)


def test_kafka_advertises_its_list_offsets_whatever_the_level() -> None:
    driver = Driver(1, conformance=Conformance.APACHE)
    driver.cluster.controller.update_features({METADATA_VERSION: 28})
    assert (level(driver), list_offsets(driver)) == (28, 11)


def test_reset_goes_back_to_the_first_levels() -> None:
    driver = Driver(1)
    lower(driver)
    driver.cluster.reset()
    assert (level(driver), list_offsets(driver)) == (HIGHEST, 11)


@pytest.mark.parametrize("version", versions("update_features"))
def test_a_level_that_is_there_already_is_no_change(version: int) -> None:
    driver = Driver(1)
    before = driver.cluster.controller.image
    answer = update(driver, (METADATA_VERSION, HIGHEST, 1), version=version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    results = [(r.feature, r.error_code, r.error_message) for r in answer.results]
    assert results == ([(METADATA_VERSION, 0, "NONE")] if version < 2 else [])
    assert driver.cluster.controller.image is before


def test_validation_alone_changes_nothing() -> None:
    driver = Driver(1)
    good, bad = (METADATA_VERSION, 28, 3), (METADATA_VERSION, 28, 2)
    assert update(driver, good, validate_only=True).error_code == ErrorCode.NONE
    assert update(driver, bad, validate_only=True).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert level(driver) == HIGHEST


@pytest.mark.parametrize("version", versions("update_features"))
def test_one_that_cannot_be_refuses_them_all(version: int) -> None:
    driver = Driver(1)
    for asked in (
        [(METADATA_VERSION, 28, 3), ("group.version", 1, 1)],
        [("group.version", 1, 1), (METADATA_VERSION, 28, 3)],
    ):
        answer = update(driver, *asked, version=version)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "an error: Invalid update version" in answer.error_message
        assert not answer.results
    assert level(driver) == HIGHEST


def test_level_0_of_a_feature_that_is_not_served_is_what_it_has() -> None:
    driver = Driver(1)
    before = levels(driver)
    for kind in (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE):
        assert update(driver, ("group.version", 0, kind)).error_code == ErrorCode.NONE
    assert levels(driver) == before
    assert driver.cluster.controller.image.features.keys() == before.keys()


def test_eligible_leader_replicas_need_a_metadata_version() -> None:
    driver = Driver(1, features={METADATA_VERSION: 20})
    elr = (ELR_VERSION, 1, UpgradeType.UPGRADE)
    refusal = "{0} could not be set to 1 because it depends on metadata.version level 23"
    assert update(driver, elr).error_message == FAILED.format(
        1, ELR_VERSION, refusal.format(ELR_VERSION)
    )
    assert update(driver, elr, (METADATA_VERSION, 23, 1)).error_code == ErrorCode.NONE


def test_a_cluster_starts_and_begins_again_with_the_levels_of_its_options() -> None:
    driver = Driver(2, features={METADATA_VERSION: 20})
    assert levels(driver) == {METADATA_VERSION: 20}
    assert "min.insync.replicas" not in driver.broker(1).configs.layers.cluster_default
    assert update(driver, (METADATA_VERSION, 29, 1)).error_code == ErrorCode.NONE
    driver.cluster.reset()
    assert levels(driver) == {METADATA_VERSION: 20}


def test_unstable_levels_are_supported_and_finalized_where_a_config_says_so() -> None:
    unstable = "unstable.feature.versions.enable"

    def supported(driver: Driver, broker_id: int) -> int:
        keys = told(driver, broker_id).supported_features
        return next(int(each.max_version) for each in keys if each.name == METADATA_VERSION)

    everywhere = Driver(2, {unstable: "true"})
    assert (supported(everywhere, 1), level(everywhere)) == (31, 31)
    some = Driver(2, {unstable: "true"}, broker_configs={2: {unstable: "false"}})
    assert (supported(some, 1), supported(some, 2), level(some)) == (31, 30, 30)
    assert update(some, (METADATA_VERSION, 31, 1)).error_message == FAILED.format(
        31, METADATA_VERSION, "Broker 2 only supports versions 7-30"
    )


def test_level_0_of_a_feature_that_there_is_not_is_refused_in_other_words() -> None:
    answer = update(Driver(1), ("nope", 0, 1))
    assert answer.error_message == FAILED.format(0, "nope", "Feature nope not found.")


def test_a_feature_that_nobody_knows_is_refused_in_kafkas_words() -> None:
    answer = update(Driver(1), ("nope", 1, 1))
    assert answer.error_message == FAILED.format(
        1, "nope", "Local controller 1 does not support this feature."
    )


def test_of_one_that_is_named_twice_the_last_counts() -> None:
    driver = Driver(1)
    assert update(driver, (METADATA_VERSION, 99, 1), (METADATA_VERSION, 28, 3)).error_code == 0
    assert level(driver) == 28


def test_the_oldest_version_only_raises() -> None:
    driver = Driver(1)
    lower(driver)
    asked = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=27, allow_downgrade=True)
    request = UpdateFeaturesRequest(feature_updates=(asked,))
    answer = driver.ask(1, "update_features", 0, request)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(driver, (METADATA_VERSION, 29, 1), version=0).error_code == ErrorCode.NONE
    assert level(driver) == 29


def test_what_kafka_does_not_lower_is_not_lowered_where_kafka_is_to_be_followed() -> None:
    driver = Driver(1, conformance=Conformance.APACHE)
    answer = update(driver, (METADATA_VERSION, 29, UpgradeType.UNSAFE_DOWNGRADE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.endswith(
        "Unsafe metadata downgrade is not supported in this version."
    )
    assert level(driver) == HIGHEST
