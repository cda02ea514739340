"""What layers cost is told by two servers, of which one really goes without them."""

from __future__ import annotations

import json
import urllib.request

import pytest

from bench import layers, servers, wire


def turn(per_second: float, cpu: float = 1.0) -> layers.Turn:
    return layers.Turn(per_second=per_second, cpu=cpu)


def test_a_slowdown_is_the_median_of_its_turns() -> None:
    pairs = [
        (turn(98), turn(100)),
        (turn(50), turn(100)),
        (turn(101), turn(100)),
    ]
    assert layers.slowdown(pairs) == pytest.approx(2.0)


def test_cpu_time_is_of_all_turns_together() -> None:
    pairs = [(turn(1, 0.3), turn(1, 0.2)), (turn(1, 0.8), turn(1, 0.8))]
    assert layers.extra_cpu(pairs) == pytest.approx(10.0)


@pytest.mark.parametrize(("module", "noted"), [("fencepost", True), (layers.BARE, False)])
def test_the_bare_server_serves_and_notes_nothing(module: str, noted: bool) -> None:
    kind = servers.Fencepost(brokers=1, module=module)
    with servers.running(kind) as server:
        server.create((servers.TOPIC,), 1)
        with server.connect_to_leader(servers.TOPIC, 0) as connection:
            answer = connection.ask(wire.list_offsets_request(servers.TOPIC, 0))
            assert wire.decode_list_offsets(answer) == 0
        base = f"http://{servers.HOST}:{server.launch.control_port}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{base}/v1/trace?api=ListOffsets") as answered:
            assert bool(json.load(answered)) is noted
        with opener.open(f"{base}/metrics") as answered:
            assert (b'api="ListOffsets"' in answered.read()) is noted
