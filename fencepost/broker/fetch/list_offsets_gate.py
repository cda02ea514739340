"""The gate after an election (KIP-207): which ListOffsets lookups wait for the high watermark.

A new leader may know a lower high watermark than its predecessor had told clients. Until it has
reached the log end that the leader was elected with, an answer could go back behind an earlier one,
and a client's lookup is refused instead. Other brokers and debuggers are answered, and records can
be fetched meanwhile.

How much is refused is the topic's ``list.offsets.gate``. Where leaders are elected uncleanly,
offsets go back anyway, and the KIP leaves the gate open.
"""

from typing import Final

from fencepost.broker.configs.effective_configs import BrokerConfigs, ListOffsetsGate
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode

FIRST_WITH_OWN_ERROR: Final = 5
"""The ListOffsets version from which clients know OFFSET_NOT_AVAILABLE."""


def effective_gate(configs: BrokerConfigs, replica: Replica) -> ListOffsetsGate:
    """What the gate holds back from clients of this leader now; off while it is open."""
    if replica.gate_is_open:
        return ListOffsetsGate.OFF
    return configs.topic(replica.topic).list_offsets_gate


def gate_error(version: int) -> ErrorCode:
    """What a lookup at the gate is answered, in the words of its ListOffsets version."""
    if version >= FIRST_WITH_OWN_ERROR:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE
