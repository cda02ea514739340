"""Each limit has a test, a default that is true, and a place in docs/security.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fencepost.broker import handlers
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.limits import LIMITS, Limit
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.controller.topic_changes import MAX_PARTITIONS_PER_REQUEST
from fencepost.broker.handlers import create_topics, describe_configs

TESTS: Final = Path(__file__).resolve().parents[2]
PROOFS: Final = {
    "bytes of a request": (
        "protocol/test_frames.py::test_a_size_out_of_bounds_is_refused_as_soon_as_it_is_there"
    ),
    "elements that an array claims to have": (
        "protocol/test_codec.py::test_an_array_is_refused_before_its_first_element"
    ),
    "elements of a request, in all its arrays": (
        "protocol/test_codec.py::test_a_message_has_a_limited_number_of_elements"
    ),
    "elements of a request that changes something": (
        "broker/server/test_connection.py::test_a_request_that_changes_too_much_at_once_is_refused"
    ),
    "tagged fields of a request's header": (
        "protocol/test_frames.py::test_a_header_has_a_limited_number_of_tagged_fields"
    ),
    "tagged fields of a request's body": (
        "protocol/test_codec.py::test_a_message_has_a_limited_number_of_tagged_fields"
    ),
    "bytes of a batch": (
        "storage/log/test_leader_append.py::test_what_is_larger_than_max_message_bytes"
    ),
    "records of a batch, and those that are read of a Produce": (
        "storage/log/test_leader_append.py::test_a_batch_of_too_many_records_is_refused_unread"
    ),
    "bytes that the batches unpack to which are read of a Produce": (
        "protocol/test_record_scan.py::test_the_batches_of_a_request_share_what_they_unpack_to"
    ),
    "gzip members or snappy blocks of a batch that is read": (
        "protocol/test_compression.py::test_members_and_blocks_are_limited_in_number"
    ),
    "records at fault that the answer for a partition names": (
        "storage/log/test_leader_append.py::test_records_at_fault_are_named_up_to_a_limit"
    ),
    "partitions that a CreateTopics, CreatePartitions or Metadata creates": (
        "broker/handlers/test_request_limits.py::"
        "test_a_request_creates_ten_thousand_partitions_at_most"
    ),
    "configs in an answer of DescribeConfigs": (
        "broker/handlers/test_request_limits.py::test_an_answer_describes_so_many_configs"
    ),
    "partitions in an answer of DescribeTopicPartitions": (
        "broker/handlers/test_describe_topic_partitions.py::test_the_brokers_own_limit_holds_too"
    ),
    "bytes of records in an answer of Fetch": (
        "broker/handlers/test_fetch.py::test_the_brokers_limit_holds_for_consumers"
    ),
    "bytes of a committed offset's metadata": (
        "broker/groups/test_offsets.py::test_metadata_is_measured_as_java_does"
    ),
    "bytes of a client's telemetry": (
        "broker/handlers/test_telemetry.py::test_a_push_has_a_size_limit"
    ),
}
"""The test of each limit: its file and its name."""


def test_every_limit_has_a_test() -> None:
    assert {limit.name for limit in LIMITS} == PROOFS.keys()


@pytest.mark.parametrize("proof", PROOFS.values())
def test_the_test_is_there(proof: str) -> None:
    path, _, name = proof.partition("::")
    assert f"def {name}" in (TESTS / path).read_text()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_a_limit_has_a_default(limit: Limit) -> None:
    if limit.default is None:
        assert limit.set_by in {**broker_configs(), **topic_configs()}


def test_the_defaults_of_limits_that_no_config_sets_are_those_of_the_code() -> None:
    defaults = {limit.name: limit.default for limit in LIMITS}
    created = defaults["partitions that a CreateTopics, CreatePartitions or Metadata creates"]
    assert created == MAX_PARTITIONS_PER_REQUEST == create_topics.MAX_PARTITIONS
    assert defaults["elements of a request that changes something"] == handlers.MAX_CHANGES
    assert defaults["configs in an answer of DescribeConfigs"] == describe_configs.MAX_ENTRIES
