"""Each limit has a test, a default that is true, and a place in docs/security.md."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from docs.limits import LIMITS, Limit
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.server import journal
from fencepost.protocol import frames
from fencepost.verbs import bodies

TESTS: Final = Path(__file__).resolve().parent
ALL: Final = tuple(chain.from_iterable(LIMITS.values()))
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
    "characters of a topic's name": (
        "broker/handlers/test_create_topics.py::test_an_illegal_name_is_refused_in_kafkas_words"
    ),
    "records of the metadata log that a CreateTopics writes": (
        "broker/handlers/test_create_topics.py::test_counts_that_cannot_be_are_refused"
    ),
    "incremental fetch sessions": (
        "broker/fetch/test_fetch_sessions.py::test_when_there_is_no_room_one_gets_no_session"
    ),
    "members of a group": (
        "broker/groups/test_classic_membership_join.py::"
        "test_a_stable_group_has_no_room_above_its_size"
    ),
    "milliseconds of a member's session timeout": (
        "broker/handlers/test_groups.py::test_session_timeouts_are_bounded"
    ),
    "client instances whose telemetry a broker knows": (
        "broker/handlers/test_telemetry.py::test_a_broker_keeps_a_bounded_number_of_clients"
    ),
    "bytes of logs in memory, and of a tier in memory": (
        "broker/produce/test_memory_full.py::test_all_else_goes_on"
    ),
    "the same with what groups commit": (
        "storage/test_log_memory.py::test_coordinators_have_a_reserve_and_an_end"
    ),
    "bytes of requests that arrive or wait for their answer": (
        "broker/server/test_connection.py::"
        "test_a_frame_that_would_take_too_much_closes_its_connection_alone"
    ),
    "requests that the journal keeps, and as many between brokers": (
        "broker/server/test_journal.py::test_the_oldest_go_when_there_are_too_many"
    ),
    "bytes that they take": (
        "broker/server/test_journal.py::test_the_oldest_go_when_they_are_too_large"
    ),
    "connections, and files of logs that are open": (
        "broker/server/test_asyncio_connection.py::test_no_more_connections_than_descriptors"
    ),
    "files of logs that are held open": (
        "broker/server/test_resources.py::test_files_are_held_open_up_to_a_number"
    ),
    "connections of clients to a broker": (
        "broker/server/test_asyncio_connection.py::test_no_more_connections_than_max_connections"
    ),
    "the same from one address": (
        "broker/server/test_asyncio_connection.py::"
        "test_no_more_connections_of_a_host_than_max_connections_per_ip"
    ),
    "milliseconds that a connection is silent": (
        "broker/server/test_asyncio_connection.py::"
        "test_a_connection_is_closed_when_it_was_silent_for_too_long"
    ),
    "requests of a connection that wait for their answer": (
        "broker/server/test_connection.py::"
        "test_reading_stops_while_too_many_requests_wait_and_none_is_lost"
    ),
    "connections that need no room beside those of clients": (
        "control/test_limits.py::"
        "test_connections_beyond_the_descriptors_are_closed_and_leave_room_when_they_end"
    ),
    "requests that are answered at a time": (
        "control/test_guard.py::test_no_more_requests_are_answered_at_a_time_than_may_be"
    ),
    "streams of events": "control/test_guard.py::test_no_more_streams_are_open_than_may_be",
    "events of one kind that are kept": (
        "broker/core/test_event_history.py::test_a_frequent_kind_does_not_push_out_the_others"
    ),
    "bytes of a head whose rest is waited for": (
        "control/test_limits.py::test_a_head_has_a_limited_size"
    ),
    "seconds that a connection takes to send a head, or the rest of a refused body": (
        "control/test_guard.py::test_what_a_client_owes_is_not_waited_for"
    ),
    "bytes of a body": "control/test_limits.py::test_a_body_of_the_limit_is_read",
    "seconds that a body takes to arrive": (
        "control/test_guard.py::test_a_body_that_does_not_come_is_not_waited_for"
    ),
    "bytes of the form that takes a token": "control/test_guard.py::test_a_form_has_a_limited_size",
    "characters of a token": (
        "verbs/test_control_token.py::test_any_other_text_is_refused_and_not_repeated"
    ),
    "requests of an answer of the trace": "control/test_limits.py::test_numbers_have_limits",
    "elements of a message that the trace shows": (
        "control/test_message_json.py::test_long_arrays_are_cut_and_say_so"
    ),
    "batches of a partition that the trace shows": (
        "control/test_message_json.py::test_a_summary_lists_only_the_first_batches"
    ),
    "bytes of a field that the trace shows": (
        "control/test_message_json.py::test_bytes_are_shown_while_they_are_few"
    ),
    "partitions in the metrics": (
        "control/test_metrics.py::test_only_so_many_partitions_are_told_one_by_one"
    ),
    "groups, and partitions of groups, in the metrics": (
        "control/test_routes_groups.py::test_members_offsets_and_lag_are_metrics"
    ),
    "records, offsets or topics that a verb is given, and records of its answer": (
        "verbs/test_record_bodies.py::test_what_is_wrong_is_said_in_one_line"
    ),
    "bytes of keys, values and headers that are answered of a partition": (
        "control/test_routes_records.py::test_a_large_answer_ends_before_its_limit"
    ),
    "fetches of a step": "control/test_limits.py::test_numbers_have_limits",
    "actions in a fault's sequence": (
        "broker/faults/test_rules.py::test_what_nothing_could_meet_is_refused_in_one_line"
    ),
    "kinds of forgotten requests that are counted apart, by API, version and client": (
        "broker/server/test_journal_history.py::test_only_so_many_kinds_are_told_apart"
    ),
    "characters of a client id by which they are counted apart": (
        "broker/server/test_journal_history.py::test_a_long_client_id_is_not_kept"
    ),
    "deleted topics whose ids `verify` knows": (
        "broker/server/test_journal_history.py::test_the_last_deleted_topics_are_known_by_their_ids"
    ),
    "milliseconds of a fault's delay, or of a wait": (
        "control/test_limits.py::test_numbers_have_limits"
    ),
    "milliseconds that a manual clock is advanced by": (
        "control/test_limits.py::test_numbers_have_limits"
    ),
    "bytes of the log that wait for the reader of a pipe": (
        "broker/server/test_logs.py::"
        "test_a_reader_that_is_back_is_told_once_how_many_lines_were_dropped"
    ),
    "lines of `--trace` that wait for the disk": (
        "broker/server/test_trace_file.py::test_who_is_too_fast_waits_and_nothing_is_lost"
    ),
    "bytes of a file of `--trace`": (
        "broker/server/test_trace_file.py::test_files_end_with_a_whole_line_and_all_are_kept"
    ),
    "files of `--trace`": (
        "broker/server/test_trace_file.py::"
        "test_only_the_newest_files_are_kept_where_there_is_a_limit"
    ),
    "values within values": (
        "scenario/test_document.py::test_what_is_no_yaml_of_ours_is_told_with_its_place"
    ),
    "values, each as often as aliases repeat it": (
        "scenario/test_document.py::test_what_aliases_stand_for_is_bounded"
    ),
    "characters of all texts, likewise": (
        "scenario/test_document.py::test_what_aliases_stand_for_is_bounded"
    ),
    "digits of a number": (
        "scenario/test_document.py::test_what_is_no_yaml_of_ours_is_told_with_its_place"
    ),
    "texts that the ranges of a list stand for": (
        "scenario/test_document_ranges.py::test_all_ranges_of_a_list_are_bounded_together"
    ),
    "characters of a range": (
        "scenario/test_document_ranges.py::test_what_is_too_long_for_a_range_is_text"
    ),
    "repetitions of a step": "scenario/test_loader.py::test_mistakes_in_a_step",
    "milliseconds that a step waits": "scenario/test_loader.py::test_mistakes_in_a_step",
    "characters of a message about a file": (
        "scenario/test_document.py::test_a_mistake_about_a_long_text_is_one_line_that_can_be_read"
    ),
    "brokers": "cli/test_serve_options.py::test_what_serve_refuses",
    "log directories of a broker": "cli/test_serve_options.py::test_what_serve_refuses",
    "the highest port": "cli/test_serve_options.py::test_what_serve_refuses",
    "characters of a host's name": "cli/test_serve_options.py::test_what_serve_refuses",
}
"""The test of each limit: its file and its name."""


def test_every_limit_has_a_name_of_its_own_and_a_test() -> None:
    assert sorted(limit.name for limit in ALL) == sorted(PROOFS)


@pytest.mark.parametrize("limit", ALL, ids=lambda limit: limit.name)
def test_the_test_is_there_and_so_is_a_default(limit: Limit) -> None:
    path, _, name = PROOFS[limit.name].partition("::")
    tests = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((TESTS / path).read_text())
    assert name in {each.name for each in tree.body if isinstance(each, tests)}
    assert limit.shown_default()
    assert (limit.set_by is None) is (limit.default is not None), "what sets it has the default"


def test_limits_that_stand_in_two_places_are_the_same() -> None:
    default = broker_configs()["socket.request.max.bytes"].default
    assert default == str(frames.DEFAULT_LIMIT)
    assert bodies.MAX_LISTED == journal.MAX_EXCHANGES, "all that is kept can be listed"
