from __future__ import annotations

from fencepost.client.consumer.operations import Operation


def test_an_operation_ends_once() -> None:
    operation: Operation[int] = Operation()
    ends: list[int] = []
    operation.then(lambda: ends.append(operation.result()))
    operation.complete(1)
    operation.complete(2)
    operation.fail(ValueError())
    operation.then(lambda: ends.append(operation.result()))
    assert ends == [1, 1]


def test_an_operation_that_was_dropped_calls_nothing() -> None:
    operation: Operation[int] = Operation()
    ends: list[int] = []
    operation.then(lambda: ends.append(1))
    operation.cancel()
    operation.complete(1)
    assert operation.done
    assert ends == []
