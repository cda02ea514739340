"""Records the conversations of a real broker: ``python -m tests.broker.groups.record HOST:PORT``.

The broker must have no groups. The groups of a conversation are deleted, or expire, at its end.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path
from uuid import UUID

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_response, encode_request, response_body_offset
from fencepost.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from fencepost.protocol.messages.delete_groups import DeleteGroupsRequest
from fencepost.protocol.messages.describe_groups import DescribeGroupsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from fencepost.protocol.messages.list_groups import ListGroupsRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.groups.scripts import ALL
from tests.broker.groups.talk import TOPIC_IDS, TOPICS, Message, Names, Script, Step, as_json

ANSWERS = Path(__file__).with_name("answers.jsonl")
_SETTLED_S = 0.4
"""How long to wait until a request that is parked has arrived."""


class Client:
    """A connection to the real broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 30)

    def send(self, api: str, version: int, request: object, client_id: str) -> None:
        chunks = encode_request(BY_NAME[api], version, 1, client_id, request)
        self.socket.sendall(b"".join(chunks))

    def receive(self, api: str, version: int) -> Message:
        size = struct.unpack(">i", self._exactly(4))[0]
        frame = self._exactly(size)
        described = BY_NAME[api]
        return decode_response(described, version, frame, response_body_offset(described, version))

    def call(self, api: str, version: int, request: object, client_id: str = "probe") -> Message:
        self.send(api, version, request, client_id)
        return self.receive(api, version)

    def _exactly(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            chunk = self.socket.recv(count - len(out))
            if not chunk:
                raise ConnectionError(f"{len(out)} of {count} bytes")
            out += chunk
        return bytes(out)


def record(address: tuple[str, int], script: Script, names: Names) -> list[Message]:
    """Every answer of a conversation."""
    clients: dict[str, Client] = {}
    parked: dict[str, Step] = {}
    answers = []
    for step in script:
        client = clients.setdefault(step.on, Client(address))
        if isinstance(step, Step):
            asked = step
            client.send(step.api, step.version, names.fill_in(step.request), step.client_id)
            if step.parks:
                parked[step.on] = step
                time.sleep(_SETTLED_S)
                continue
        else:
            asked = parked.pop(step.on)
        answer = client.receive(asked.api, asked.version)
        if step.learn is not None:
            names.learn(step.learn, answer.member_id)
        answers.append(names.take_out(answer))
    return answers


def clean(client: Client) -> None:
    """Delete all groups."""
    listed = client.call("list_groups", 5, ListGroupsRequest()).groups
    for group in listed:
        described = client.call(
            "describe_groups", 5, DescribeGroupsRequest(groups=(group.group_id,))
        )
        members = described.groups[0].members
        identities = tuple(MemberIdentity(member_id=one.member_id) for one in members)
        leave = LeaveGroupRequest(group_id=group.group_id, members=identities)
        client.call("leave_group", 5, leave)
    request = DeleteGroupsRequest(groups_names=tuple(group.group_id for group in listed))
    for result in client.call("delete_groups", 2, request).results:
        assert result.error_code == 0, result


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    address = (host, int(port))
    client = Client(address)
    ids = prepare(client)
    lines = []
    for name, make in ALL.items():
        script = make()
        clean(client)
        names = Names(topic_ids=ids)
        names.learn("$host", host)
        names.learn("$client", f"/{client.socket.getsockname()[0]}")
        for answer in record(address, script, names):
            row = as_json(answer)
            for found in [row, *row.get("coordinators", ())]:
                if found.get("port") == address[1]:
                    found["port"] = 9092
            lines.append(json.dumps({"in": name, "answer": row}))
    ANSWERS.write_text("\n".join(lines) + "\n")


def prepare(client: Client) -> dict[UUID, UUID]:
    """The topics, and ``__consumer_offsets``."""
    topics = tuple(
        CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS
    )
    client.call("create_topics", 7, CreateTopicsRequest(topics=topics, timeout_ms=5000))
    while client.call("find_coordinator", 1, FindCoordinatorRequest(key="g")).error_code:
        time.sleep(0.2)
    time.sleep(_SETTLED_S)
    known = client.call("metadata", 12, MetadataRequest(topics=None)).topics
    real = {topic.name: topic.topic_id for topic in known}
    return {placeholder: real[name] for name, placeholder in TOPIC_IDS.items()}


if __name__ == "__main__":
    main()
