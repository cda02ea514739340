"""Which of Kafka's tests are run: what is left out is there, and named with a reason."""

from __future__ import annotations

from tests.kafka.__main__ import works
from tests.kafka.selection import ARTIFACTS, NOT_RUN, classes_of, methods_not_run, simple_name


def test_classes_with_a_cluster_and_without_one_are_run() -> None:
    names = {simple_name(each) for artifact in ARTIFACTS for each in classes_of(artifact)}
    assert names >= {"PlaintextConsumerTest", "TopicCommandTest", "ConsoleProducerTest"}


def test_classes_that_start_brokers_of_their_own_are_not_run() -> None:
    names = {simple_name(each) for artifact in ARTIFACTS for each in classes_of(artifact)}
    assert not names & {"ResetIntegrationTest", "AuthorizerIntegrationTest"}


def test_what_is_left_out_is_left_out_by_its_name() -> None:
    left_out = {name for name in NOT_RUN if "#" not in name}
    run = {simple_name(work.class_name): work for work in works(())}
    assert not run.keys() & left_out
    for test in NOT_RUN.keys() - left_out:
        name, _, method = test.partition("#")
        assert methods_not_run(run[name].class_name) == {method}
        assert run[name].line == f"{run[name].class_name} -{method}"
