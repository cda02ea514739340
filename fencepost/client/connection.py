"""One connection to one broker: requests go out at once, answers come back in their order.

A `Call` is an API with the classes of its request and response, so that `Connection.ask` is typed.
"""

import asyncio
import struct
from asyncio import Future, StreamReader, StreamWriter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fencepost.client.errors import (
    DialectNotServed,
    Disconnected,
    KafkaClientError,
    MalformedAnswer,
    NotServed,
    TimedOut,
    Unreachable,
)
from fencepost.protocol.apis import Api
from fencepost.protocol.codec import (
    MalformedMessage,
    decode_response,
    encode_request,
    response_body_offset,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

from typing import Generic

from msgspec import Struct

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from fencepost.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from fencepost.protocol.messages.fetch import FetchRequest, FetchResponse
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from fencepost.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataResponse
from fencepost.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fencepost.protocol.messages.produce import ProduceRequest, ProduceResponse
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

Q = TypeVar("Q")
R = TypeVar("R")


class Call(Struct, Generic[Q, R], frozen=True):
    """An API with the types of its messages."""

    api: Api


PRODUCE: Final[Call[ProduceRequest, ProduceResponse]] = Call(BY_NAME["produce"])
FETCH: Final[Call[FetchRequest, FetchResponse]] = Call(BY_NAME["fetch"])
LIST_OFFSETS: Final[Call[ListOffsetsRequest, ListOffsetsResponse]] = Call(BY_NAME["list_offsets"])
METADATA: Final[Call[MetadataRequest, MetadataResponse]] = Call(BY_NAME["metadata"])
DESCRIBE_CONFIGS: Final[Call[DescribeConfigsRequest, DescribeConfigsResponse]] = Call(
    BY_NAME["describe_configs"]
)
OFFSET_COMMIT: Final[Call[OffsetCommitRequest, OffsetCommitResponse]] = Call(
    BY_NAME["offset_commit"]
)
OFFSET_FETCH: Final[Call[OffsetFetchRequest, OffsetFetchResponse]] = Call(BY_NAME["offset_fetch"])
FIND_COORDINATOR: Final[Call[FindCoordinatorRequest, FindCoordinatorResponse]] = Call(
    BY_NAME["find_coordinator"]
)
JOIN_GROUP: Final[Call[JoinGroupRequest, JoinGroupResponse]] = Call(BY_NAME["join_group"])
SYNC_GROUP: Final[Call[SyncGroupRequest, SyncGroupResponse]] = Call(BY_NAME["sync_group"])
HEARTBEAT: Final[Call[HeartbeatRequest, HeartbeatResponse]] = Call(BY_NAME["heartbeat"])
LEAVE_GROUP: Final[Call[LeaveGroupRequest, LeaveGroupResponse]] = Call(BY_NAME["leave_group"])
API_VERSIONS: Final[Call[ApiVersionsRequest, ApiVersionsResponse]] = Call(BY_NAME["api_versions"])
INIT_PRODUCER_ID: Final[Call[InitProducerIdRequest, InitProducerIdResponse]] = Call(
    BY_NAME["init_producer_id"]
)
ADD_PARTITIONS_TO_TXN: Final[Call[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse]] = Call(
    BY_NAME["add_partitions_to_txn"]
)
ADD_OFFSETS_TO_TXN: Final[Call[AddOffsetsToTxnRequest, AddOffsetsToTxnResponse]] = Call(
    BY_NAME["add_offsets_to_txn"]
)
TXN_OFFSET_COMMIT: Final[Call[TxnOffsetCommitRequest, TxnOffsetCommitResponse]] = Call(
    BY_NAME["txn_offset_commit"]
)
END_TXN: Final[Call[EndTxnRequest, EndTxnResponse]] = Call(BY_NAME["end_txn"])
OFFSET_FOR_LEADER_EPOCH: Final[Call[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]] = (
    Call(BY_NAME["offset_for_leader_epoch"])
)


TIMEOUT_S: Final = 30.0
SOFTWARE: Final = "fencepost"
_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")


class Connection:
    """A connection that is open until it is closed, by either side. Made by `connect`.

    :param client_id: Sent with every request; None sends a null.
    :ivar dialect: The draft that both sides speak; with None all versions are Kafka's.
    """

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        client_id: str | None,
        dialect: "Draft | None" = None,
    ) -> None:
        self.client_id = client_id
        self.dialect = dialect
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._waiting: dict[int, Future[bytes]] = {}
        self._ended: KafkaClientError | None = None
        self._versions: dict[int, tuple[int, int]] | None = None
        self._features: dict[str, int] = {}
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent; a broker that is gone may not be noticed yet."""
        return self._ended is None

    async def ask(
        self, call: Call[Q, R], request: Q, version: int, *, timeout_s: float = TIMEOUT_S
    ) -> R:
        """Send a request and wait for its answer; others may be under way.

        :raises Disconnected: When the connection ends before the answer.
        :raises TimedOut: When no answer comes in time; the connection is closed then.
        :raises MalformedAnswer: When the answer is none to this request.
        """
        frame = await self._exchange(call.api, version, request, timeout_s)
        answer: R = self._decode(call.api, version, frame)
        return answer

    async def ask_any(
        self, api: Api, version: int, request: object, *, timeout_s: float = TIMEOUT_S
    ) -> Any:  # noqa: ANN401  # an answer of that API
        """Like `ask`, for an API that is chosen by a value.

        :param request: The API's request.
        """
        return self._decode(api, version, await self._exchange(api, version, request, timeout_s))

    async def send(self, call: Call[Q, R], request: Q, version: int) -> None:
        """Send a request that gets no answer: Produce with acks=0.

        :raises Disconnected: When the connection has ended.
        """
        await self._write(call.api, version, request)

    async def versions(self, *, timeout_s: float = TIMEOUT_S) -> dict[int, tuple[int, int]]:
        """The versions of each API by its key that the broker serves, both inclusive.

        It is asked once a connection, together with the connection's dialect.

        :raises DialectNotServed: When the broker does not name the feature of the dialect.
        :raises KafkaClientError: As `ask`.
        """
        if self._versions is None:
            answer = await self._ask_versions(timeout_s)
            if self.dialect is not None:
                _check_dialect(self.dialect, answer)
            self._versions = {
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            }
            self._features = {
                each.name: each.max_version_level for each in answer.finalized_features
            }
        return self._versions

    async def finalized_level(self, feature: str, *, timeout_s: float = TIMEOUT_S) -> int:
        """The finalized level of a feature when the versions were asked; 0 without any.

        :raises KafkaClientError: As `ask`.
        """
        await self.versions(timeout_s=timeout_s)
        return self._features.get(feature, 0)

    async def best_version(self, api: Api, *, timeout_s: float = TIMEOUT_S) -> int:
        """The highest version of an API that both sides know.

        On a connection with a dialect it is the one that has schemas of the dialect, if any has.

        :raises NotServed: When there is none.
        :raises KafkaClientError: As `ask`.
        """
        low, high = (await self.versions(timeout_s=timeout_s)).get(api.key, (0, -1))
        drafted = None if self.dialect is None else self.dialect.highest(api)
        if drafted is not None and low <= drafted <= high:
            return drafted
        version = min(high, api.max_version)
        if version < max(low, api.min_version):
            raise NotServed(f"the broker serves no version of {api.title} that is known here")
        return version

    async def close(self) -> None:
        """End it; who waits for an answer is told `Disconnected`."""
        self._end(Disconnected("the connection was closed"))
        self._receiving.cancel()
        await asyncio.wait([self._receiving])
        with suppress(OSError):
            await self._writer.wait_closed()

    # -- versions -------------------------------------------------------------------------------

    async def _ask_versions(self, timeout_s: float) -> ApiVersionsResponse:
        api = API_VERSIONS.api
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE,
            client_software_version="0",
            dialect_requested=self.dialect is not None,
        )
        frame = await self._exchange(api, api.max_version, request, timeout_s)
        # A broker that does not know the version answers so in version 0 (KIP-511).
        (code,) = _INT16.unpack_from(frame, 4)
        version = 0 if code == ErrorCode.UNSUPPORTED_VERSION else api.max_version
        answer: ApiVersionsResponse = self._decode(api, version, frame)
        if code == ErrorCode.UNSUPPORTED_VERSION and not answer.api_keys:
            return await self.ask(API_VERSIONS, ApiVersionsRequest(), 0, timeout_s=timeout_s)
        return answer

    # -- frames ---------------------------------------------------------------------------------

    async def _exchange(self, api: Api, version: int, request: object, timeout_s: float) -> bytes:
        answer: Future[bytes] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._write(api, version, request, answer)
                return await answer
        except TimeoutError:
            text = f"no answer to {api.title} within {timeout_s:g} s"
            self._end(Disconnected(f"the connection was closed: {text}"))
            raise TimedOut(text) from None
        finally:
            # The caller is gone: a failure must not be reported as never retrieved.
            answer.cancel()
            if not answer.cancelled():
                answer.exception()

    async def _write(
        self, api: Api, version: int, request: object, answer: "Future[bytes] | None" = None
    ) -> None:
        if self._ended is not None:
            raise type(self._ended)(*self._ended.args)
        self._last_id += 1
        correlation_id = self._last_id
        chunks = encode_request(api, version, correlation_id, self.client_id, request, self.dialect)
        if answer is not None:
            self._waiting[correlation_id] = answer
        try:
            self._writer.writelines(chunks)
            await self._writer.drain()
        # RuntimeError: so uvloop reports a reset by the peer that no read has met yet.
        except (OSError, RuntimeError) as error:
            text = f"the connection ended: {error}"
            self._end(Disconnected(text))
            raise Disconnected(text) from error

    def _decode(self, api: Api, version: int, frame: bytes) -> Any:  # noqa: ANN401  # an answer
        offset = response_body_offset(api, version)
        try:
            return decode_response(api, version, frame, offset, self.dialect)
        except MalformedMessage as error:
            raise MalformedAnswer(str(error)) from error

    async def _receive(self) -> None:
        try:
            while True:
                (size,) = _INT32.unpack(await self._reader.readexactly(4))
                self._deliver(await self._reader.readexactly(size))
        except (OSError, asyncio.IncompleteReadError):
            self._end(Disconnected("the broker closed the connection"))
        except (ValueError, struct.error, KafkaClientError):
            self._end(MalformedAnswer("what came is no answer"))

    def _deliver(self, frame: bytes) -> None:
        (correlation_id,) = _INT32.unpack_from(frame)
        answer = self._waiting.pop(correlation_id, None)
        if answer is None:
            raise MalformedAnswer(f"an answer to request {correlation_id}, which was not sent")
        if not answer.done():  # who gave up waiting
            answer.set_result(frame)

    def _end(self, why: KafkaClientError) -> None:
        if self._ended is None:
            self._ended = why
        self._writer.close()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(type(why)(*why.args))


async def connect(
    host: str,
    port: int,
    client_id: str | None,
    *,
    dialect: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Connection:
    """Connect to a broker; nothing is sent yet, unless to ask for a dialect.

    :param dialect: The name of the draft that the connection speaks, ``kip-320-draft``; with None
        all versions are Kafka's.
    :raises ValueError: When there is no such dialect.
    :raises Unreachable: When the connection is not accepted in time.
    :raises DialectNotServed: When the broker does not serve the dialect.
    :raises KafkaClientError: As `Connection.ask`, with a dialect.
    """
    draft = None if dialect is None else find_dialect(dialect)
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"no broker accepts at {host}:{port}: {error}") from error
    connection = Connection(reader, writer, client_id, draft)
    if draft is not None:
        try:
            await connection.versions(timeout_s=timeout_s)
        except BaseException:
            await connection.close()
            raise
    return connection


def find_dialect(name: str) -> "Draft":
    """The schemas of a dialect; imported when one is used.

    :raises ValueError: When there is no such dialect.
    """
    from fencepost.protocol.codec.drafts import find_draft

    return find_draft(name)


def _check_dialect(dialect: "Draft", answer: ApiVersionsResponse) -> None:
    named = answer.supported_features
    if any(
        each.name == dialect.feature and each.min_version <= 1 <= each.max_version for each in named
    ):
        return
    levels = [f"{each.name} {each.min_version} to {each.max_version}" for each in named]
    raise DialectNotServed(
        f"the broker does not serve the dialect {dialect.name}: of the supported feature"
        f" {dialect.feature} it does not name level 1, only {', '.join(levels) or 'no feature'};"
        f" serve it with --dialect {dialect.name}, or connect without a dialect"
    )
