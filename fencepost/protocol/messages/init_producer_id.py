"""InitProducerId (22), versions 0 to 6.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class InitProducerIdRequest(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1  # v3+
    producer_epoch: int = -1  # v3+
    enable2_pc: bool = False  # v6+
    keep_prepared_txn: bool = False  # v6+


class InitProducerIdResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1  # v6+
    ongoing_txn_producer_epoch: int = -1  # v6+
