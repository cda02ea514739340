"""Whether what came is what was expected: of an answer, of partitions, of the journal."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.compare import Mismatch, compare
from fencepost.scenario.document import Data, resolve
from fencepost.scenario.model import Expectation, PartitionExpectation, TraceExpectation
from fencepost.verbs.bodies import MAX_LISTED
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import Refused
from fencepost.verbs.remote_async import AsyncRemote


class StepResult(Struct, frozen=True, kw_only=True):
    """What came of a step."""

    answer: Data = None
    refused: Refused | None = None
    is_action: bool = False
    """Whether a client acted, now: it is to succeed unless something else is expected."""
    is_exit: bool = False
    """Whether a process ended by itself: with 0 unless something else is expected."""
    awaited: str = "an answer"
    timeout_reason: str | None = None
    """Why there is nothing to look at."""


async def call_verb(remote: AsyncRemote, name: str, given: Mapping[str, Data]) -> Data:
    """Carry out a verb; its answer as plain data.

    :raises Refused: When the cluster refuses.
    :raises Unreachable: When there is none.
    """
    verb = VERBS[name]
    path = {each: given[each] for each in verb.path_parameters}
    body = {key: value for key, value in given.items() if key not in path}
    if verb.shape.value == "list":
        found = await remote.call_list(verb, verb.response_model, path, body)
        return [each.model_dump(mode="json") for each in found]
    answer = await remote.call(verb, verb.response_model, path, body)
    plain: Data = answer.model_dump(mode="json")
    return plain


class ExpectationChecker:
    """Compares, and asks the cluster for what it needs to.

    :param answers: Of earlier steps by their names; it grows.
    :param marks: The journal's last number before each named step; it grows.
    :param began_at: The journal's last number before the scenario.
    """

    def __init__(
        self,
        remote: AsyncRemote,
        answers: Mapping[str, Data],
        marks: Mapping[str, int],
        began_at: int,
    ) -> None:
        self._remote = remote
        self._answers = answers
        self._marks = marks
        self._began_at = began_at

    async def mismatches(
        self, expected: Expectation | None, came: StepResult, *, is_pending: bool
    ) -> list[Mismatch]:
        """All that is not as expected.

        :param is_pending: Whether the background action that the expectation names has no answer.
        :raises UnresolvedReference: When a reference names a field that is not there.
        """
        if came.timeout_reason is not None:
            return [Mismatch(path=(), field="", expected=came.awaited, actual=came.timeout_reason)]
        found = list(_implied_mismatches(expected, came))
        if expected is None or found:
            return found
        found += self._field_mismatches(expected, came)
        for partition in expected.partitions:
            found += await self._partition_mismatches(partition)
        for trace in expected.traces:
            found += await self._trace_mismatches(trace)
        if expected.pending is not None and not is_pending:
            words = f"{expected.pending} without an answer"
            place = (*expected.path, "pending")
            found.append(Mismatch(path=place, field="pending", expected=words, actual="one"))
        return found

    def _field_mismatches(self, expected: Expectation, came: StepResult) -> Iterator[Mismatch]:
        if expected.refused is not None:
            code = None if came.refused is None else came.refused.code
            path = (*expected.path, "refused")
            yield from compare(resolve(expected.refused, self._answers), code, path, "refused")
        elif expected.fields:
            fields = resolve(expected.fields, self._answers)
            yield from compare(fields, came.answer, expected.path)

    async def _partition_mismatches(self, expected: PartitionExpectation) -> list[Mismatch]:
        name = f"{expected.topic}-{expected.partition}"
        given: dict[str, Data] = {"topic": expected.topic, "partition": expected.partition}
        try:
            state = await call_verb(self._remote, "partition", given)
        except Refused as refused:
            return [Mismatch(path=expected.path, field=name, expected="it", actual=str(refused))]
        return [
            Mismatch(
                path=each.path,
                field=f"{each.field} of {name}",
                expected=each.expected,
                actual=each.actual,
            )
            for each in compare(resolve(expected.fields, self._answers), state, expected.path)
        ]

    async def _trace_mismatches(self, expected: TraceExpectation) -> list[Mismatch]:
        since = expected.since
        number = self._began_at
        if since is not None:
            number = self._marks[since] if isinstance(since, str) else since
        filters = resolve(expected.filters, self._answers)
        assert isinstance(filters, dict)
        given = {**filters, "since": number, "limit": MAX_LISTED}
        try:
            exchanges = await call_verb(self._remote, "trace", given)
        except Refused as refused:
            return [Mismatch(path=expected.path, field="trace", expected="it", actual=str(refused))]
        assert isinstance(exchanges, list)
        where = resolve(expected.where, self._answers)
        count = sum(not any(compare(where, each)) for each in exchanges)
        words = " ".join(f"{key}={value}" for key, value in filters.items())
        size = resolve(expected.size, self._answers)
        return list(compare(size, count, (*expected.path, "size"), f"exchanges with {words}"))


def _implied_mismatches(expected: Expectation | None, came: StepResult) -> Iterator[Mismatch]:
    """What goes without saying: verbs are not refused, clients are answered no error, and processes
    end with 0.
    """
    if came.refused is not None and (expected is None or expected.refused is None):
        yield Mismatch(path=(), field="refused", expected="null", actual=str(came.refused))
    said = expected.fields.keys() if expected is not None else frozenset[str]()
    if came.is_exit and "exit_code" not in said:
        for each in compare({"exit_code": 0}, came.answer):
            yield replace(each, path=())
    if not came.is_action or not said.isdisjoint(("error", "failed")):
        return
    assert isinstance(came.answer, dict)
    failed, error = came.answer["failed"], came.answer["error"]
    if failed is not None:
        yield Mismatch(path=(), field="failed", expected="null", actual=failed)
    elif error != ErrorCode.NONE.name:
        yield Mismatch(path=(), field="error", expected='"NONE"', actual=error)
