"""Logs go to standard error: one JSON object a line where that is no terminal."""

from __future__ import annotations

import json

import pytest

from fencepost.broker.server import logs


def test_a_line_is_json_with_what_it_is_bound_to(capsys: pytest.CaptureFixture[str]) -> None:
    logs.logger(connection="c1", client_id="me").info("connection_closed", reason="bad_frame")
    line = json.loads(capsys.readouterr().err)
    assert (
        line.items()
        >= {
            "event": "connection_closed",
            "level": "info",
            "connection": "c1",
            "client_id": "me",
            "reason": "bad_frame",
        }.items()
    )


def test_a_bug_is_told_with_where_it_was_but_not_with_the_data_at_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(frame: bytes) -> None:
        raise RuntimeError(f"a bug in {len(frame)} bytes")

    try:
        fail(b"secret")
    except RuntimeError:
        logs.logger().exception("handler_failed")
    text = capsys.readouterr().err
    assert json.loads(text)["exception"][0]["exc_value"] == "a bug in 6 bytes"
    assert "test_logs.py" in text
    assert "secret" not in text


def test_nothing_below_the_level_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert not logs.is_debug()
    logs.logger().debug("request")
    assert capsys.readouterr().err == ""
