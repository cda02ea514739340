"""Actions in the background: an answer that the broker has given counts, however late it comes."""

from __future__ import annotations

import asyncio

import pytest

from fencepost.scenario.actions.context import Action, ActionAnswer, ActionBody, ScenarioClients
from fencepost.scenario.actions.executor import execute
from tests.scenario.scenarios import fails, passes


async def test_what_the_broker_has_answered_is_not_pending(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(clients: ScenarioClients, action: Action, body: ActionBody) -> ActionAnswer:
        answer = await execute(clients, action, body)
        await asyncio.sleep(0.1)
        return answer

    monkeypatch.setattr("fencepost.scenario.player.execute", slowly)
    report = await fails(
        url,
        """\
        - produce: {topic: orders, records: [a0]}
          background: quick
        - expect: {pending: quick}
        """,
    )
    assert "pending: expected quick without an answer" in report[1]


async def test_what_waits_for_its_answer_is_pending(url: str) -> None:
    await passes(
        url,
        """\
        - add_fault: {api: Produce, count: null, action: {delay: 60000}}
        - produce: {topic: orders, records: [a0]}
          background: slow
        - expect: {pending: slow}
        """,
    )
