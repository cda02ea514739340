"""The parameters of a consumer, under Kafka's names."""

from dataclasses import dataclass, field
from typing import Final, TypedDict, Unpack

from fencepost.client.consumer.reset_policy import ResetPolicy, parse_reset_policy
from fencepost.client.model import Isolation
from fencepost.protocol.codec.drafts import Draft, find_draft


class ConsumerParameters(TypedDict, total=False):
    """The keyword arguments of `Consumer`; `ConsumerConfig` says what each means."""

    client_id: str | None
    group_id: str | None
    group_instance_id: str | None
    auto_offset_reset: str
    isolation_level: str
    client_rack: str
    dialect: str | None
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    max_poll_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    metadata_max_age_ms: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """A consumer's parameters; their defaults are Kafka's.

    :raises ValueError: When one has no such value, or they contradict each other.
    """

    client_id: str | None = "fencepost"
    """Sent with every request; None sends a null."""
    group_id: str | None = None
    """The group; without one no offsets are committed and no topics subscribed."""
    group_instance_id: str | None = None
    """Makes the consumer a static member (KIP-345)."""
    auto_offset_reset: str = "latest"
    """What to do without a valid position: see below."""
    isolation_level: str = "read_uncommitted"
    """With ``read_committed`` no record of an open or an aborted transaction is handed out."""
    client_rack: str = ""
    """Where it is not empty, the leader may name a follower to fetch from (KIP-392)."""
    dialect: str | None = None
    """``kip-320-draft``; None is Kafka's protocol."""
    fetch_min_bytes: int = 1
    """What a broker waits for before it answers a Fetch."""
    fetch_max_bytes: int = 52_428_800
    """The most that the answer to a Fetch holds, but for a first batch that is larger."""
    fetch_max_wait_ms: int = 500
    """How long a broker waits for ``fetch_min_bytes``."""
    max_partition_fetch_bytes: int = 1_048_576
    """The same as ``fetch_max_bytes``, for each partition."""
    max_poll_records: int = 500
    """The most records of a poll."""
    max_poll_interval_ms: int = 300_000
    """Without a poll for so long the consumer leaves its group; also the rebalance timeout."""
    session_timeout_ms: int = 45_000
    """Without a heartbeat for so long the coordinator drops the member."""
    heartbeat_interval_ms: int = 3_000
    """The time between two heartbeats."""
    metadata_max_age_ms: int = 300_000
    """When metadata is refreshed, and the leader asked again while a follower is fetched from."""
    request_timeout_ms: int = 30_000
    """How long a broker may take for an answer."""
    default_api_timeout_ms: int = 60_000
    """How long a call such as ``commit`` may take that has no ``timeout_s``."""
    retry_backoff_ms: int = 100
    """The pause before a request is repeated; it doubles each time."""
    retry_backoff_max_ms: int = 1_000
    """The longest such pause."""
    reconnect_backoff_ms: int = 50
    """The pause before a broker that did not answer is tried again; it doubles each time."""
    reconnect_backoff_max_ms: int = 1_000
    """The longest such pause."""

    draft: Draft | None = field(init=False)
    """The schemas of the dialect."""
    reset_policy: ResetPolicy = field(init=False)
    isolation: Isolation = field(init=False)

    def __post_init__(self) -> None:
        draft = None if self.dialect is None else find_draft(self.dialect)
        object.__setattr__(self, "draft", draft)
        policy = parse_reset_policy(self.auto_offset_reset, drafted=draft is not None)
        object.__setattr__(self, "reset_policy", policy)
        object.__setattr__(self, "isolation", _parse_isolation(self.isolation_level))
        if self.group_id == "":
            raise ValueError("group_id is empty; without a group it is None")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms must be less than session_timeout_ms")
        if self.max_poll_records < 1:
            raise ValueError("max_poll_records must be 1 at least")


_ISOLATION: Final = {each.name.lower(): each for each in Isolation}


def _parse_isolation(text: str) -> Isolation:
    if text not in _ISOLATION:
        raise ValueError(f"isolation_level {text!r} is none of {', '.join(_ISOLATION)}")
    return _ISOLATION[text]


def make_config(**parameters: Unpack[ConsumerParameters]) -> ConsumerConfig:
    """The config of some parameters.

    :raises ValueError: As `ConsumerConfig`.
    """
    return ConsumerConfig(**parameters)
