"""A whole cluster in memory, spoken to through the codec as a client's bytes would be."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.broker.cluster import Address, Cluster, ClusterOptions
from fencepost.broker.context import Context, Peer
from fencepost.broker.controller import NewTopic
from fencepost.broker.scheduler import ManualClock, advance
from fencepost.broker.waits import Wait
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    response_body_offset,
)
from tests.broker.groups.talk import TOPIC_IDS, TOPICS, Message, Names, Script, Step

HOST = "127.0.0.1"


class Live:
    """Brokers, a clock that stands still until it is told, and a way to ask."""

    def __init__(self, brokers: int = 1, configs: Mapping[str, str] | None = None) -> None:
        self.clock = ManualClock()
        factor = str(min(brokers, 3))
        defaults = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": factor}
        self.cluster = Cluster(
            ClusterOptions(
                addresses=tuple(
                    Address(host=HOST, port=9092 + index, advertised_host=HOST)
                    for index in range(brokers)
                ),
                topics=tuple(
                    NewTopic(name=name, partitions=2, replication_factor=1, configs={})
                    for name in TOPICS
                ),
                configs={**defaults, **(configs or {})},
            ),
            self.clock,
        )

    @property
    def names(self) -> Names:
        topics = self.cluster.controller.image.topics
        return Names(topic_ids={TOPIC_IDS[name]: topics[name].topic_id for name in TOPICS})

    def advance(self, by_ms: int) -> None:
        advance(self.cluster.scheduler, self.clock, by_ms)

    def ask(
        self,
        api: str,
        version: int,
        request: object,
        *,
        client_id: str | None = "c",
        broker: int = 1,
    ) -> Wait[Message]:
        """The answer, or the one to come, as the bytes of this version say it."""
        described = BY_NAME[api]
        frame = b"".join(encode_request(described, version, 1, client_id, request))
        header = 14 + len((client_id or "").encode()) + described.is_flexible(version)
        context = Context(
            broker=self.cluster.brokers[broker],
            version=version,
            client_id=client_id,
            peer=Peer(connection_id="1", host=HOST),
            now_ms=self.clock.now_ms(),
        )
        answer = context.broker.handle(
            described, context, decode_request(described, version, frame, header)
        )
        arrived: Wait[Message] = Wait()

        def arrive(response: object) -> None:
            arrived.complete(_through_bytes(api, version, response))

        if isinstance(answer, Wait):
            answer.then(arrive)
        else:
            arrive(answer)
        self.cluster.scheduler.run_due()
        return arrived

    def call(self, api: str, version: int, request: object, *, broker: int = 1) -> Message:
        """The answer, which has to be there."""
        answer = self.ask(api, version, request, broker=broker)
        assert answer.done, "it waits"
        return answer.result


def _through_bytes(api: str, version: int, response: object) -> Message:
    described = BY_NAME[api]
    chunks: list[Buffer] = encode_response(described, version, 1, response)
    body = b"".join(chunks)[4:]
    return decode_response(described, version, body, response_body_offset(described, version))


def hold(live: Live, script: Script, names: Names) -> list[Message]:
    """Every answer of a conversation."""
    parked: dict[str, Wait[Message]] = {}
    answers = []
    for step in script:
        if isinstance(step, Step):
            request = names.fill_in(step.request)
            answer = live.ask(step.api, step.version, request, client_id=step.client_id)
            if step.parks:
                assert not answer.done, f"{step} is answered at once: {answer.result}"
                parked[step.on] = answer
                continue
        else:
            answer = parked.pop(step.on)
        assert answer.done, f"{step} waits"
        assert answer.result is not None
        if step.learn is not None:
            names.learn(step.learn, answer.result.member_id)
        answers.append(names.take_out(answer.result))
    return answers
