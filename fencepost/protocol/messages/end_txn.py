"""EndTxn (26), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class EndTxnRequest(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1  # v5+
    producer_epoch: int = -1  # v5+
