"""Features: what is supported and finalized, and every way to ask for another level.

A Kafka that is formatted with its newest level never goes below it, so nothing changes here: all
that is asked for is refused, or is there already, or is to be validated alone. Features that
fencepost does not know are left out.
"""

from __future__ import annotations

from typing import Final

from tests.harness.served_cluster import Cluster
from tests.harness.wire import Body, Connection
from tests.oracle.asker import Asker
from tests.oracle.asking import Row, error_text
from tests.oracle.questions.api_versions import SOFTWARE
from tests.oracle.steering import Steering

SECTION: Final = "UpdateFeatures"
NAME: Final = "metadata.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
UPDATES: Final = (
    (),
    ((NAME, 30, UPGRADE),),
    ((NAME, 30, SAFE),),
    ((NAME, 30, UNSAFE),),
    ((NAME, 29, UPGRADE),),
    ((NAME, 29, SAFE),),
    ((NAME, 29, UNSAFE),),
    ((NAME, 7, UPGRADE),),
    ((NAME, 7, UNSAFE),),
    ((NAME, 31, UPGRADE),),
    ((NAME, 32, UPGRADE),),
    ((NAME, 31, SAFE),),
    ((NAME, 6, UPGRADE),),
    ((NAME, 6, UNSAFE),),
    ((NAME, 0, UPGRADE),),
    ((NAME, 0, UNSAFE),),
    ((NAME, -1, UPGRADE),),
    ((NAME, -1, 4),),
    ((NAME, 30, 0),),
    ((NAME, 30, 4),),
    (("nope", 1, UPGRADE),),
    (("nope", -1, UPGRADE),),
    (("nope", 1, 9),),
    (("", 1, UPGRADE),),
    (("nope", 1, UPGRADE), (NAME, 30, UPGRADE)),
    ((NAME, 30, UPGRADE), ("nope", 1, UPGRADE)),
    ((NAME, 30, UPGRADE), (NAME, 29, UPGRADE)),
    ((NAME, 29, UPGRADE), (NAME, 30, UPGRADE)),
)
"""Name, level and type of each; in v0 anything but an upgrade is `AllowDowngrade`."""


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Ask a cluster of one broker that has its newest level."""
    asker = Asker(cluster, steering)
    try:
        for version in (3, 4):
            asker.row(SECTION, f"ApiVersions v{version}", _told(asker.connection, version))
        for version in range(3):
            for updates in UPDATES:
                for validate_only in (False, True) if version else (False,):
                    request = f"v{version} {updates} validate={validate_only}"
                    answer = _update(asker.connection, version, updates, validate_only)
                    asker.row(SECTION, request, answer)
        asker.row(SECTION, "ApiVersions v4 afterwards", _told(asker.connection, 4))
    finally:
        asker.close()
    return asker.rows


def _told(connection: Connection, version: int) -> str:
    answer = connection.call("ApiVersions", version, SOFTWARE)
    supported = _ours(answer["SupportedFeatures(tag0)"])
    finalized = _ours(answer["FinalizedFeatures(tag2)"])
    epoch = "some" if answer["FinalizedFeaturesEpoch(tag1)"] >= 0 else "none"
    list_offsets = next(key["MaxVersion"] for key in answer["ApiKeys"] if key["ApiKey"] == 2)
    return f"{supported=} {finalized=} {epoch=} {list_offsets=}"


def _ours(features: list[Body]) -> list[Body]:
    return [feature for feature in features if feature["Name"] == NAME]


def _update(
    connection: Connection,
    version: int,
    updates: tuple[tuple[str, int, int], ...],
    validate_only: bool,
) -> str:
    asked = [
        {
            "Feature": name,
            "MaxVersionLevel": level,
            "UpgradeType": kind,
            "AllowDowngrade": kind != UPGRADE,
        }
        for name, level, kind in updates
    ]
    body = {"FeatureUpdates": asked, "ValidateOnly": validate_only}
    answer = connection.call("UpdateFeatures", version, body)
    results = [
        (each["Feature"], error_text(each["ErrorCode"]), each["ErrorMessage"])
        for each in answer.get("Results", [])
    ]
    return f"err={error_text(answer['ErrorCode'])} msg={answer['ErrorMessage']!r} {results=}"
