"""What a leader's log refuses: configs, batches with a changed header, and the refusal itself."""

import struct

from crc32c import crc32c

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.config import LogConfig, TimestampType
from fencepost.storage.log.interface import Log
from tests.harness.logs import NOW, new_log
from tests.harness.records import batch

CODECS = list(Codec)
LOG_APPEND_TIME = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
CHECKED = LogConfig(validate_records=True)


def changed(at: int, form: str, value: int, data: bytes | bytearray | None = None) -> bytearray:
    """A batch with one field of its header changed and the checksum made good."""
    result = bytearray(data or batch())
    struct.pack_into(form, result, at, value)
    struct.pack_into(">I", result, 17, crc32c(bytes(result[21:])))
    return result


def refused(
    data: Buffer,
    config: LogConfig | None = None,
    *,
    log: Log | None = None,
    allow_zstd: bool = True,
) -> AppendRejected:
    log = log or new_log(config)
    end = log.log_end_offset
    result = log.append_as_leader(data, leader_epoch=0, now_ms=NOW, allow_zstd=allow_zstd)
    assert isinstance(result, AppendRejected)
    assert log.log_end_offset == end
    return result


def with_log_start(error: ErrorCode) -> AppendRejected:
    return AppendRejected(error=error, log_start_offset=0)
