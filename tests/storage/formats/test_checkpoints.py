"""The text files of a log directory, as Kafka 4.3.1 wrote them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_clean_shutdown,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
)
from fencepost.storage.log.leader_epoch_cache import EpochEntry

EPOCHS = b"0\n2\n0 0\n2 45\n"
OFFSETS = b"0\n4\n__transaction_state 0 8\nplain 1 45\n__consumer_offsets 0 0\na-b.c_d 12 100\n"
NONE = b"0\n0\n"
METADATA = b"version: 0\ntopic_id: iwgR_s6OTV2orlhvn7dzCw"
TOPIC_ID = UUID("8b0811fe-ce8e-4d5d-a8ae-586f9fb7730b")
META = b"""#
#Sat Nov 21 20:03:33 UTC 2026
node.id=1
directory.id=MkU3OEVBNTcwNTJENDM2QQ
version=1
cluster.id=MkU3OEVBNTcwNTJENDM2Qk
"""


def test_leader_epochs() -> None:
    entries = (EpochEntry(0, 0), EpochEntry(2, 45))
    assert decode_epochs(EPOCHS) == entries
    assert encode_epochs(entries) == EPOCHS
    assert encode_epochs(()) == NONE
    assert decode_epochs(NONE) == ()


def test_offsets() -> None:
    offsets = {
        ("__transaction_state", 0): 8,
        ("plain", 1): 45,
        ("__consumer_offsets", 0): 0,
        ("a-b.c_d", 12): 100,
    }
    assert decode_offsets(OFFSETS) == offsets
    assert encode_offsets(offsets) == OFFSETS
    assert encode_offsets({}) == NONE
    assert decode_offsets(memoryview(NONE)) == {}


def test_an_empty_checkpoint_has_no_entries() -> None:
    """As Kafka takes it."""
    assert decode_epochs(b"") == ()
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"0\n",
        b"0",
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n-1\n",
        b"0\n1\n",
        b"0\n0\n0 0\n",
        b"0\n1\n0 0",
        b"0\n1\n0 0\n\n",
        b"0\n1\n0\n",
        b"0\n1\n0 0 0 0\n",
        b"0\n1\n0 x\n",
        b"0\n1\n0 -1\n",
        b"0\n1\nt 0 -1\n",
        b"0\n1\nt x 1\n",
        b"0\n1\n\xff 0\n",
        b"0\n1\n0 \xd9\xa3\n",
        bytes(20),
    ],
)
@pytest.mark.parametrize("decode", [decode_epochs, decode_offsets])
def test_what_is_no_checkpoint_is_corrupt(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode(data)


@pytest.mark.parametrize(("decode", "data"), [(decode_epochs, EPOCHS), (decode_offsets, OFFSETS)])
def test_a_torn_checkpoint_is_noticed(decode: Callable[[bytes], object], data: bytes) -> None:
    for size in range(1, len(data)):
        with pytest.raises(CorruptCheckpoint):
            decode(data[:size])


def test_partition_metadata() -> None:
    assert decode_partition_metadata(METADATA) == TOPIC_ID
    assert decode_partition_metadata(METADATA + b"\n") == TOPIC_ID
    assert encode_partition_metadata(TOPIC_ID) == METADATA


@pytest.mark.parametrize(
    "data",
    [
        b"",
        METADATA[:-1],
        METADATA + b"x",
        METADATA.replace(b"0", b"1"),
        METADATA.replace(b"_s", b"/s"),
        METADATA.replace(b"topic_id", b"id"),
        b"\xff" + METADATA,
    ],
)
def test_what_is_no_partition_metadata_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_partition_metadata(data)


def test_meta_properties() -> None:
    properties = {
        "node.id": "1",
        "directory.id": "MkU3OEVBNTcwNTJENDM2QQ",
        "version": "1",
        "cluster.id": "MkU3OEVBNTcwNTJENDM2Qk",
    }
    assert decode_properties(META) == properties
    assert encode_properties(properties, "Sat Nov 21 20:03:33 UTC 2026") == META


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("name=", ""),
        ("name", ""),
        ("name=a=b", "a=b"),
        ("name = a b ", "a b "),
        ("name: a", "a"),
        ("  name a", "a"),
        (r"na\u006de=a\=\:\\b\t\u00e9", "a=:\\b\té"),
    ],
)
def test_properties_are_read_as_java_reads_them(line: str, value: str) -> None:
    text = f"# name=no\n\n! name=no\n{line}\nother=1\n"
    assert decode_properties(text.encode()) == {"name": value, "other": "1"}


odd = st.sampled_from("aé€:=#! \\.\t\n\r\x0b\x85")


@given(st.dictionaries(st.text(odd, min_size=1), st.text(odd)))
def test_every_property_is_read_as_it_was_written(properties: dict[str, str]) -> None:
    assert decode_properties(encode_properties(properties)) == properties


def test_clean_shutdown() -> None:
    assert encode_clean_shutdown(96) == b'{"version":0,"brokerEpoch":96}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":96}') == 96


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"1", b'{"brokerEpoch":null}', b"\xff", b"{"])
def test_a_clean_shutdown_may_say_no_epoch(data: bytes) -> None:
    assert decode_clean_shutdown(data) == -1
