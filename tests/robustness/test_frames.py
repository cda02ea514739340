"""Frames cut anywhere, and frames with anything wrong: only their own connection notices."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.protocol.apis import APIS, Api
from tests.harness.served_cluster import Cluster
from tests.harness.wire import Body, Connection, frame
from tests.robustness.messages import random_request, resized, spoiled

CLOSED_S = 30.0
BODY_STARTS = 18
"""Behind the size, the header, and the client id "fuzz"."""
SEEDS = st.integers(0, 2**32 - 1)


def requests() -> list[bytes]:
    """Requests that are answered at once, and always with the same."""
    offsets: Body = {"ReplicaId": -1, "Topics": []}
    no_session: Body = {"MaxWaitMs": 0, "MinBytes": 0, "SessionId": 7, "SessionEpoch": 3}
    made: list[tuple[str, int, Body]] = [
        ("ApiVersions", 0, {}),
        ("ApiVersions", 2, {}),  # from v3 on it says how often the cluster has changed
        ("Metadata", 1, {"Topics": []}),
        ("Metadata", 12, {"Topics": []}),
        ("ListOffsets", 11, offsets),
        ("Fetch", 12, no_session),
        ("OffsetForLeaderEpoch", 4, {"Topics": []}),
    ]
    return [
        frame(api, version, body, correlation_id=i) for i, (api, version, body) in enumerate(made)
    ]


@pytest.fixture(scope="module")
def answers(broker: Cluster) -> list[bytes]:
    """What each of the requests is answered alone."""
    found = []
    for request in requests():
        with broker.connect() as connection:
            connection.socket.sendall(request)
            found.append(connection.receive())
    return found


@settings(max_examples=150)
@given(
    chosen=st.lists(st.integers(0, len(requests()) - 1), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_chunks_do_not_matter(
    broker: Cluster, answers: list[bytes], chosen: list[int], cuts: list[int]
) -> None:
    everything = b"".join(requests()[i] for i in chosen)
    places = sorted({0, len(everything), *(cut for cut in cuts if cut < len(everything))})
    with broker.connect() as connection:
        for start, end in pairwise(places):
            connection.socket.sendall(everything[start:end])
        for i in chosen:
            assert connection.receive() == answers[i]


def test_one_byte_at_a_time(broker: Cluster, answers: list[bytes]) -> None:
    with broker.connect() as connection:
        for byte in b"".join(requests()):
            connection.socket.sendall(bytes([byte]))
        assert [connection.receive() for _ in answers] == answers


@pytest.fixture(scope="module")
def witness(broker: Cluster) -> Iterator[Connection]:
    """A connection from before, which must go on being served."""
    with broker.connect() as connection:
        yield connection


@settings(max_examples=300)
@given(seed=SEEDS, honest_size=st.booleans())
def test_corruption_closes_at_worst_its_own_connection(
    broker: Cluster, witness: Connection, seed: int, honest_size: bool
) -> None:
    rng = random.Random(seed)
    data = spoiled(random_request(rng), rng, keep=0 if not honest_size else 4)
    assert_survived(broker, witness, resized(data) if honest_size else data)


@settings(max_examples=150)
@given(data=st.binary(max_size=200))
def test_noise_closes_at_worst_its_own_connection(
    broker: Cluster, witness: Connection, data: bytes
) -> None:
    assert_survived(broker, witness, data)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_every_version_of_every_api_cut_short(
    broker: Cluster, witness: Connection, api: Api
) -> None:
    for version in range(api.min_version, api.max_version + 1):
        rng = random.Random(version)
        whole = random_request(rng, api)
        for size in (4, 8, 12, len(whole) // 2, len(whole) - 1):
            cut = (
                whole[:4] + api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + whole[8:size]
            )
            assert_survived(broker, witness, resized(cut))


@pytest.mark.parametrize(
    "length", [b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff"], ids=["compact", "int32"]
)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_enormous_lengths_are_not_believed(
    broker: Cluster, witness: Connection, api: Api, length: bytes
) -> None:
    """Wherever a length may stand: nothing is allocated for what the frame cannot hold."""
    whole = random_request(random.Random(api.key), api)
    for at in range(BODY_STARTS, min(len(whole), BODY_STARTS + 60)):
        assert_survived(broker, witness, resized(whole[:at] + length + whole[at + 1 :]))


def assert_survived(broker: Cluster, witness: Connection, data: bytes) -> None:
    """Send bytes and our end: the broker ends as well, and the witness is served."""
    with socket.create_connection(broker.addresses[0], CLOSED_S) as attacker:
        try:
            attacker.sendall(data)
            attacker.shutdown(socket.SHUT_WR)
            assert_whole_answers(_drain(attacker))
        except ConnectionError:
            pass  # closed before all was sent
    assert witness.call("Metadata", 12, {"Topics": []})["Brokers"]


def assert_whole_answers(received: bytes) -> None:
    """What came back is a row of whole frames."""
    while received:
        assert len(received) >= 8
        (size,) = struct.unpack(">i", received[:4])
        assert 4 <= size <= len(received) - 4
        received = received[4 + size :]


def _drain(source: socket.socket) -> bytes:
    received = b""
    while chunk := source.recv(1 << 16):
        received += chunk
    return received
