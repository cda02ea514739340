"""The tables of records, and what a command takes of one."""

from __future__ import annotations

from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi, ok, refusal

RECORD = {
    "partition": 0,
    "offset": 42,
    "leader_epoch": 3,
    "timestamp": 1764000000000,
    "key": "17",
    "value": "two",
    "headers": {"a": "1", "b": None},
    "encoding": "text",
    "producer_id": None,
    "producer_epoch": None,
    "sequence": None,
    "transaction": None,
}


def test_records_are_read_as_a_table(stub: FakeControlApi, shell: Shell) -> None:
    other = {"key": None, "value": None, "headers": [["a", "1"], ["a", "2"]]}
    parsed = {"value": {"id": 17}, "headers": {}, "encoding": "json", "timestamp": 2**63 - 1}
    records = [RECORD, RECORD | other, RECORD | parsed]
    stub.will(ok({"records": records, "next_offset": 43}))
    assert shell.text("records read orders 0").splitlines() == [
        "partition  offset  epoch  time                      key   value       headers",
        "0          42      3      2025-11-24T16:00:00.000Z  17    two         a=1, b=null",
        "0          42      3      2025-11-24T16:00:00.000Z  null  null        a=1, a=2",
        '0          42      3      9223372036854775807       17    {"id": 17}  -',
        "next offset 43",
    ]


def test_where_records_went_is_shown(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({"records": [{"partition": 1, "offset": 42}]}))
    shown = shell.text("records produce orders --value two")
    assert shown == "partition  offset\n1          42\n"


def test_a_record_is_sent_as_it_is_typed(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({"records": []}))
    shell.text('records produce orders --record a --record {"key":"k"} --partition 1')
    shell.text("records produce orders --value [1] --encoding json --header a=1 --header a=2")
    shell.text("records expect orders --key k --no-value --header a=1")
    assert [each.body for each in stub.asked] == [
        {"records": ["a", {"key": "k"}], "partition": 1},
        {"value": [1], "encoding": "json", "headers": [["a", "1"], ["a", "2"]]},
        {"key": "k", "value": None, "headers": {"a": "1"}},
    ]


def test_what_is_typed_wrong_is_said(shell: Shell) -> None:
    for line, said in (
        ("records produce t --record {", "--record: no JSON: "),
        ("records produce t --value [ --encoding json", "--value: no JSON: "),
        ("records expect t --key k --no-key", "give --key or --no-key, not both"),
        ("records produce t", "give records, or the key, value, headers and timestamp of one"),
    ):
        assert said in shell.refusal(line)


def test_the_nearest_records_are_in_the_one_line_of_a_refusal(
    stub: FakeControlApi, shell: Shell
) -> None:
    said = 'orders has no record with key "17" after 10 ms; nearest: orders-0 offset 3: key "18"'
    stub.will(refusal(409, "REQUEST_TIMED_OUT", said))
    assert shell.refusal("records expect orders --key 17", 1) == (
        f"fencepost: {said} (REQUEST_TIMED_OUT)"
    )
