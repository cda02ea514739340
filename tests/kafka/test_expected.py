"""The list of Kafka's tests that fail, and how a run is compared with it."""

from __future__ import annotations

import pytest

from tests.kafka.expected import Expected, Reason, absent, problems, read, summary
from tests.kafka.suite import Events, Result

LISTED = {
    "GroupsTest#share[1]": Expected(Reason.GROUPS),
    "BrokerTest#log": Expected(Reason.JAVA, "KafkaBroker.logManager()"),
}


def result(test: str, outcome: str, trace: str = "") -> Result:
    return Result.from_json({"test": test, "outcome": outcome, "trace": trace, "seconds": 1.0})


def test_the_list_is_read() -> None:
    text = (
        "# a comment\n\nGroupsTest#share[1] groups\nBrokerTest#log java KafkaBroker.logManager()\n"
    )
    assert read(text) == LISTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ATest#a slow", "slow"),
        ("ATest#a java", "a Java call"),
        ("ATest#a groups brokers()", "a Java call"),
        ("ATest#a groups\nATest#a access", "listed twice"),
    ],
)
def test_a_wrong_list_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(text)


def test_a_run_that_is_as_listed_has_no_problems() -> None:
    trace = "OutOfReach: KafkaBroker.logManager() is out of reach\n\tat ..."
    results = [
        result("GroupsTest#share[1]", "fail", "UnsupportedVersionException"),
        result("BrokerTest#log", "fail", trace),
        result("BrokerTest#start", "pass"),
    ]
    assert list(problems(results, LISTED)) == []
    assert absent(results, LISTED) == []
    assert summary(results, LISTED) == "1 of 3 pass, 1 fail for groups, 1 fail for java"


def test_what_differs_from_the_list_is_a_problem() -> None:
    results = [
        result("GroupsTest#share[1]", "pass"),
        result("BrokerTest#log", "fail", "OutOfReach: KafkaBroker.metrics() is out of reach"),
        result("BrokerTest#start", "fail", "AssertionError: 3\n\tat ..."),
        result("BrokerTest#stop", "pass"),
        result("BrokerTest#stop", "pass"),
    ]
    by = "is listed: java KafkaBroker.logManager()"
    assert list(problems(results, LISTED)) == [
        "BrokerTest#stop ran 2 times",
        "GroupsTest#share[1] passes, but is listed: groups",
        f"BrokerTest#log fails by KafkaBroker.metrics(), but {by}",
        "BrokerTest#start fails: AssertionError: 3",
    ]
    assert summary(results[2:], LISTED) == "2 of 3 pass, 1 fail and are not listed"


def test_a_listed_test_that_does_not_exist_is_named_by_a_run_of_all() -> None:
    results = [result("BrokerTest#log", "fail")]
    assert absent(results, LISTED) == ["GroupsTest#share[1] is listed and did not run"]


def test_tests_are_named_by_class_method_and_invocation() -> None:
    events = Events("org.apache.kafka.ATest")
    started = {"event": "start", "method": "a", "name": "a(ClusterInstance)[2]"}
    assert list(events.results(started)) == []
    (found,) = events.results({**started, "event": "fail", "trace": "why"})
    assert (found.test, found.outcome, found.trace) == ("ATest#a[2]", "fail", "why")


def test_a_test_that_ran_when_its_jvm_ended_has_failed() -> None:
    events = Events("org.apache.kafka.ATest")
    for name in ("a()", "b()"):
        list(events.results({"event": "start", "method": name[0], "name": name}))
    list(events.results({"event": "pass", "method": "a", "name": "a()"}))
    assert [(each.test, each.outcome) for each in events.lost("ended")] == [("ATest#b", "fail")]
    assert events.begun == {"a", "b"}
