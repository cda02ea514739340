"""Hashes: of keys, and of batches."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencepost.protocol import byte_utils
from fencepost.protocol.byte_utils import murmur2


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, expected: int) -> None:
    """The values of Kafka's own UtilsTest, which are signed."""
    assert murmur2(key) == expected % 2**32


@pytest.mark.parametrize("has_extension", [True, False])
def test_crc_32c_of_the_catalogue(monkeypatch: pytest.MonkeyPatch, has_extension: bool) -> None:
    if not has_extension:  # another layout of the package
        monkeypatch.setattr(byte_utils, "find_spec", lambda _name: None)
    implementation = byte_utils._crc32c_implementation.__wrapped__()
    assert implementation(b"123456789", 0) == 0xE3069283
    assert implementation(memoryview(b"6789"), implementation(b"12345", 0)) == 0xE3069283


def test_a_checksum_does_not_import_the_command_line_of_its_package() -> None:
    code = (
        "import sys; from fencepost.protocol.byte_utils import crc32c; crc32c(b'');"
        " print(sorted({'crc32c', 'argparse', 'email'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
