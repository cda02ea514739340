"""A user of the store: asks one node after the other until one has a result."""

import asyncio
import json
from collections.abc import Sequence
from itertools import cycle
from typing import Final

from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.server import MAX_LINE, Failure, Mistake
from examples.kvstore.state import Operation, Result

PAUSE_S: Final = 0.05
"""Before the next node is asked, when one had no result."""
_CONNECT_S: Final = 2.0


async def do(nodes: Sequence[tuple[str, int]], operation: Operation, patience_s: float) -> Result:
    """Let the node that leads the key's shard carry an operation out.

    :param nodes: Host and port of each.
    :raises NotDone: When none did in time, and none will.
    :raises Unknown: When a node may have done it and did not say so. Then no other one is asked:
        who asks twice may get it done twice.
    :raises Mistake: When a node says that it is no operation.
    """
    deadline = asyncio.get_running_loop().time() + patience_s
    why = "there was no time to ask a node"
    for node in cycle(nodes):
        if asyncio.get_running_loop().time() >= deadline:
            break
        try:
            return await _ask(*node, operation, deadline)
        except NotDone as error:
            why = str(error)
        await asyncio.sleep(PAUSE_S)
    raise NotDone(why)


async def _ask(host: str, port: int, operation: Operation, deadline: float) -> Result:
    where = f"{host}:{port}"
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(host, port, limit=MAX_LINE)
    except (OSError, TimeoutError) as error:
        raise NotDone(f"no node serves at {where}: {error}") from error
    said = {
        "op": operation.kind.value,
        "key": operation.key,
        "value": operation.value,
        "expected": operation.expected,
    }
    try:
        async with asyncio.timeout_at(deadline):
            writer.write(json.dumps(said).encode() + b"\n")
            line = await reader.readline()
    except (OSError, TimeoutError) as error:
        raise Unknown(f"{where} did not answer: {error}") from error
    finally:
        writer.close()
    if not line:
        raise Unknown(f"{where} closed the connection and did not answer")
    return _result(json.loads(line))


def _result(answer: dict[str, object]) -> Result:
    error, message = answer.get("error"), str(answer.get("message"))
    if error == Failure.UNKNOWN:
        raise Unknown(message)
    if error == Failure.MISTAKE:
        raise Mistake(message)
    if error is not None:
        raise NotDone(message)
    value = answer["value"]
    assert value is None or isinstance(value, str)
    return Result(done=answer["done"] is True, value=value)
