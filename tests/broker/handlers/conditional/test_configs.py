"""Who decides whether offsets are checked, and what a refusal is called."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional import frames
from tests.broker.handlers.conditional.playing import play, stored, table
from tests.broker.handlers.conditional.rows import (
    BY_HEADER,
    MISMATCH,
    OFF,
    ON,
    UNSPECIFIED,
    Batch,
    Row,
    appended,
    batch,
    failed,
    mismatch,
    one,
    stating,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, create_topics
from tests.harness.typed_requests import creatable

DENIED: Final = {"check.expected.offsets": "false"}
INVALID: Final = failed(ErrorCode.INVALID_RECORD)

OFFSETS_MEAN_NOTHING: Final = (
    one("off and beyond the end", "abc", batch("d", 99), appended(3), "abcd", configs=OFF),
    one(
        "off and the base offset of all clients",
        "abc",
        batch("d", 0),
        appended(3),
        "abcd",
        configs=OFF,
    ),
    one(
        "off and nothing expected", "abc", batch("d", UNSPECIFIED), appended(3), "abcd", configs=OFF
    ),
    one("off and a header", "abc", stating("d", 99), appended(3), "abcd", configs=OFF),
    one("off and two batches", "abc", [batch("d", 3), batch("e", 4)], INVALID, "abc", configs=OFF),
    one(
        "off and a gap",
        "abc",
        Batch(values="de", at=3, deltas=(0, 2)),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
        configs=OFF,
    ),
    one("denied", "abc", batch("d", 99), appended(3), "abcd", configs=DENIED),
)

BROKERS: Final = (
    one(
        "the brokers' default",
        "abc",
        batch("d", 4),
        mismatch((0, 4, 3)),
        "abc",
        configs=OFF,
        brokers=ON,
    ),
    one(
        "the topic against the brokers",
        "abc",
        batch("d", 4),
        appended(3),
        "abcd",
        configs=DENIED,
        brokers=ON,
    ),
    one(
        "the brokers' source",
        "abc",
        stating("d", 4),
        mismatch((0, 4, 3)),
        "abc",
        configs=OFF,
        brokers=BY_HEADER,
    ),
    one(
        "the topic's source against the brokers'",
        "abc",
        stating("d", 4, at=3),
        appended(3),
        "abcd",
        configs={"check.expected.offsets.source": "batch"},
        brokers=BY_HEADER,
    ),
    one(
        "the brokers' scope",
        [batch("abc", UNSPECIFIED, "xyx")],
        batch("d", 2, "x"),
        mismatch((0, 2, 3, 2)),
        "abc",
        configs=ON,
        brokers={"check.expected.offsets.scope": "key"},
    ),
    one(
        "the brokers' code",
        "abc",
        batch("d", 4),
        mismatch((0, 4, 3), code=45),
        "abc",
        brokers={"check.expected.offsets.error.code": "45"},
    ),
    one(
        "the topic's code against the brokers'",
        "abc",
        batch("d", 4),
        mismatch((0, 4, 3), code=87),
        "abc",
        configs={**ON, "check.expected.offsets.error.code": "87"},
        brokers={"check.expected.offsets.error.code": "45"},
    ),
)

CODES: Final = tuple(
    one(
        f"the code {code}",
        "abc",
        [batch("d", 3), batch("e", 3)],
        mismatch((1, 3, 4), code=code),
        "abc",
        configs={**ON, "check.expected.offsets.error.code": str(code)},
    )
    for code in (-1, 1, 45, 87, MISMATCH, 9999, 32767)
)

APACHE: Final = (
    one("apache and off", "abc", batch("d", 3), failed(87, start=0), "abc", configs=OFF),
    one("apache and off and 0", "abc", batch("d", 0), appended(3), "abcd", configs=OFF),
    one(
        "apache and off and nothing",
        "abc",
        batch("d", UNSPECIFIED),
        failed(87, start=0),
        "abc",
        configs=OFF,
    ),
    one(
        "apache and off and two batches",
        "abc",
        [batch("d", 0), batch("e", 0)],
        INVALID,
        "abc",
        configs=OFF,
    ),
    one("apache and right", "abc", batch("d", 3), appended(3), "abcd"),
    one("apache and wrong", "abc", batch("d", 0), mismatch((0, 0, 3)), "abc"),
    one("apache and nothing expected", "abc", batch("d", UNSPECIFIED), appended(3), "abcd"),
    one("apache and two batches", "abc", [batch("d", 3), batch("e", 4)], appended(3), "abcde"),
    one("apache and a header", "abc", stating("d", 3), appended(3), "abcd", configs=BY_HEADER),
    one(
        "apache and a wrong header",
        "abc",
        stating("d", 4),
        mismatch((0, 4, 3)),
        "abc",
        configs=BY_HEADER,
    ),
    one(
        "apache and a header and a base offset",
        "abc",
        stating("d", 3, at=3),
        failed(87, start=0),
        "abc",
        configs=BY_HEADER,
    ),
)


@table([*OFFSETS_MEAN_NOTHING, *BROKERS, *CODES])
def test_configs(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"


@table(APACHE)
def test_conformance_with_apache(row: Row) -> None:
    for version in row.versions:
        assert play(row, version, Conformance.APACHE) == row.played(version), f"v{version}"


@pytest.mark.parametrize("version", frames.VERSIONS)
def test_it_is_switched_on_and_off_while_records_come(version: int) -> None:
    driver = Driver(1)
    create(driver, "t")

    def code(at: int, *more: Batch) -> int:
        sent = b"".join(each.encoded for each in (batch("d", at), *more))
        ((_, answer),) = frames.send(driver, [("t-0", sent)], version=version).answers
        return int(answer["ErrorCode"])

    def switch(**configs: str) -> None:
        kafkas = {f"check.expected.offsets{key}": value for key, value in configs.items()}
        driver.cluster.controller.set_topic_configs("t", kafkas)
        driver.cluster.scheduler.run_due()

    assert code(7) == ErrorCode.NONE
    switch(**{"": "true"})
    assert code(0) == MISMATCH
    assert code(1, batch("e", 2)) == ErrorCode.NONE
    switch(**{"": "true", ".source": "header", ".error.code": "45"})
    assert code(0) == ErrorCode.NONE
    assert code(0, stating("e", 9)) == 45
    switch(**{"": "false", ".source": "header"})
    assert code(0, stating("e", 9)) == ErrorCode.INVALID_RECORD
    assert code(9) == ErrorCode.NONE
    assert stored(driver, "t-0") == "ddedd"


def test_the_brokers_default_is_switched_on_and_off_while_records_come() -> None:
    driver = Driver(1)
    create(driver, "t")

    def code(at: int) -> int:
        ((_, answer),) = frames.send(driver, [("t-0", batch("d", at).encoded)]).answers
        return int(answer["ErrorCode"])

    codes = []
    for value in ("true", "false"):
        codes.append(code(9))
        configs = {"check.expected.offsets": value}
        driver.cluster.controller.set_broker_configs(None, configs)
        driver.cluster.scheduler.run_due()
    codes.append(code(9))
    assert codes == [ErrorCode.NONE, MISMATCH, ErrorCode.NONE]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check.expected.offsets", "yes"),
        ("check.expected.offsets.source", "record"),
        ("check.expected.offsets.scope", "topic"),
        ("check.expected.offsets.error.code", "0"),
        ("check.expected.offsets.error.code", "-2"),
        ("check.expected.offsets.error.code", "32768"),
        ("check.expected.offsets.error.code", "many"),
    ],
)
def test_values_that_there_are_not(name: str, value: str) -> None:
    driver = Driver(1)
    (answer,) = create_topics(driver, creatable("t", configs=[(name, value)]))
    assert answer.error_code == ErrorCode.INVALID_CONFIG
