from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bench import load, process


def test_memory_is_read_in_mebibytes() -> None:
    status = "Name:\tx\nVmHWM:\t    4096 kB\nVmRSS:\t    1536 kB\nThreads:\t1\n"
    assert process.parse_status(status) == process.Memory(resident=1.5, peak=4.0)


def test_an_ended_process_has_no_memory_to_read() -> None:
    with pytest.raises(KeyError):
        process.parse_status("Name:\tx\nState:\tZ (zombie)\n")


def test_cpu_ticks_are_found_behind_any_command_name() -> None:
    text = "17 (a ) 1 2) S 1 2 3 4 5 6 7 8 9 10 250 50 11 12 20 0"
    assert process.parse_cpu_ticks(text) == 300


def test_our_own_process_has_memory_and_has_used_the_cpu() -> None:
    assert 0 < process.memory(os.getpid()).resident <= process.memory(os.getpid()).peak
    assert process.cpu_seconds(os.getpid()) > 0


def test_busy_is_everything_but_idle_and_waiting_for_disks() -> None:
    assert (
        process.parse_busy_ticks("cpu  1 2 4 800 900 8 16 32 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n") == 63
    )


def test_what_others_use_is_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    clock, busy, own = iter([10.0, 20.0]), iter([100.0, 112.0]), iter([5.0, 10.0])
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(process, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(process, "_own_seconds", lambda: next(own))
    assert process.Others().share() == pytest.approx(0.35)


def test_available_memory_is_in_bytes() -> None:
    text = "MemTotal:       8 kB\nMemFree:        1 kB\nMemAvailable:   3 kB\n"
    assert process.parse_available(text) == 3072


def test_free_ports_can_all_be_bound() -> None:
    first = process.free_ports(4)
    sockets = [socket.socket() for _ in range(4)]
    try:
        for offset, one in enumerate(sockets):
            one.bind(("127.0.0.1", first + offset))
    finally:
        for one in sockets:
            one.close()


@pytest.mark.parametrize("at_once", [False, True])
def test_stop_ends_the_child(at_once: bool) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.stop(child, at_once=at_once)
    assert child.returncode is not None
    process.stop(child)


def test_stop_kills_a_child_that_will_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOP_S", 0.2)
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        process.stop(child)
        assert child.returncode == -9


def answer(**changes: object) -> str:
    fields = {"records": 10, "bytes": 10_240, "seconds": 0.5, "failed": 0, "error": ""}
    return json.dumps({**fields, **changes})


def test_a_clients_answer_gives_records_a_second() -> None:
    moved = load.parse(answer(), 10)
    assert (moved.records, moved.per_second) == (10, 20.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (answer(records=9, bytes=9216, error="_TIMED_OUT"), "9 of 10 records, error _TIMED_OUT"),
        (answer(failed=1), "10 of 10"),
        (answer(bytes=10_239), "10 of 10"),
        (answer(seconds=0), "too few"),
        ("", "no answer"),
    ],
)
def test_a_client_that_did_not_move_everything_whole_has_failed(text: str, reason: str) -> None:
    with pytest.raises(load.LoadFailed, match=reason):
        load.parse(text, 10)
