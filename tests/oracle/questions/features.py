"""Features: what is supported and finalized, and every way to ask for another level.

A Kafka that is formatted with its newest level never goes below it, so nothing changes here: all
that is asked for is refused, or is there already, or is to be validated alone; only the eligible
leader replicas go and come back. Features that fencepost does not know are left out.
"""

from __future__ import annotations

from typing import Final

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Connection
from tests.oracle.asker import Asker
from tests.oracle.asking import Row, error_text
from tests.oracle.questions.api_versions import SOFTWARE
from tests.oracle.steering import Steering

SECTION: Final = "UpdateFeatures"
NAME: Final = "metadata.version"
KRAFT: Final = "kraft.version"
ELR: Final = "eligible.leader.replicas.version"
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
    ((KRAFT, 1, UPGRADE),),
    ((KRAFT, 1, SAFE),),
    ((KRAFT, 0, UPGRADE),),
    ((KRAFT, 0, SAFE),),
    ((KRAFT, 0, UNSAFE),),
    ((KRAFT, 2, UPGRADE),),
    ((KRAFT, -1, SAFE),),
    ((KRAFT, 1, 4),),
    ((ELR, 1, UPGRADE),),
    ((ELR, 0, UPGRADE),),
    ((ELR, 2, UPGRADE),),
    ((ELR, -1, SAFE),),
    ((ELR, 1, 4),),
    ((ELR, 1, UPGRADE), (KRAFT, 0, SAFE)),
    ((KRAFT, 1, UPGRADE), (ELR, 1, UPGRADE), (NAME, 30, UPGRADE)),
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
        for level, kind in ((0, SAFE), (0, UPGRADE), (0, UNSAFE), (1, SAFE), (1, UPGRADE)):
            answer = _update(asker.connection, 2, ((ELR, level, kind),), False)
            asker.row(SECTION, f"eligible leader replicas to {level} by {kind}", answer)
            asker.row(SECTION, f"ApiVersions v3 then ({level}, {kind})", _seen(asker, level, kind))
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
    found = [feature for feature in features if feature["Name"] in (NAME, KRAFT, ELR)]
    return sorted(found, key=lambda feature: str(feature["Name"]))


def _seen(asker: Asker, level: int, kind: int) -> str:
    """What ApiVersions says once the broker has heard of a level."""
    final = 1 if (level, kind) == (1, UPGRADE) else 0

    def told() -> str | None:
        text = _told(asker.connection, 3)
        return text if text.count("MaxVersionLevel") == 2 + final else None

    return wait_until("the broker knows the features", told)


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
