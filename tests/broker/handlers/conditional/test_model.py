"""The broker against a plain model, with random requests in random states.

What goes wrong is shown as the shortest story that goes wrong: offsets in it are told as distances
from where a record would be right.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, TypeAlias

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from fencepost.protocol.compression import Codec
from tests.broker.handlers.conditional import frames, model
from tests.broker.handlers.conditional.playing import stored
from tests.broker.handlers.conditional.rows import HEADER, Batch, int64
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.durable_driver import DurableDriver
from tests.harness.wire import Body

PARTITIONS: Final = ("t-0", "t-1", "u-0")
NOTHING: Final = "nothing"
ZERO: Final = "zero"
NO_OFFSET: Final = "no offset"
Near: TypeAlias = "int | str"
"""So far from where it would be right; or nothing is expected, or 0, or it is no offset."""


class Shown:
    """Prints what is not as it mostly is."""

    def __repr__(self) -> str:
        told = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)  # type: ignore[arg-type]  # those who inherit are dataclasses
            if getattr(self, each.name) != each.default
        ]
        return f"{type(self).__name__}({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class Sent(Shown):
    """A batch, a record for each key; "." is none."""

    keys: str = "."
    base: Near = 0
    stated: tuple[Near, ...] = ()
    """In the headers of the first records; the others have none."""
    gap: int = 0
    codec: Codec = Codec.NONE
    sequence: Near = NOTHING
    """Of a producer: 0 is right."""


@dataclass(frozen=True, repr=False)
class Produce(Shown):
    """A request."""

    parts: tuple[tuple[str, tuple[Sent, ...]], ...] = ()


@dataclass(frozen=True, repr=False)
class Again(Shown):
    """One of the last requests, as it was."""

    ago: int = 1


@dataclass(frozen=True, repr=False)
class Delete(Shown):
    """DeleteRecords."""

    partition: str = "t-0"
    records: int = 1


@dataclass(frozen=True, repr=False)
class Lose(Shown):
    """The last batch is truncated."""

    partition: str = "t-0"


@dataclass(frozen=True, repr=False)
class Switch(Shown):
    """Other configs for t."""

    on: bool = True
    by_header: bool = False
    by_key: bool = False


@dataclass(frozen=True, repr=False)
class Restart(Shown):
    """Another process goes on with the files; where logs are in memory, nothing happens."""

    kill: bool = False


Step: TypeAlias = Produce | Again | Delete | Lose | Switch | Restart

NEAR: Final = st.sampled_from((0, 0, 0, 0, 1, -1, -2, -5, 3, NOTHING, ZERO))
SENT: Final = st.builds(
    Sent,
    keys=st.text("xyz.", min_size=1, max_size=3),
    base=NEAR,
    stated=st.lists(NEAR | st.just(NO_OFFSET), max_size=3).map(tuple),
    gap=st.sampled_from((0, 0, 0, 0, 1, 2)),
    codec=st.sampled_from((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4)),
    sequence=st.sampled_from((NOTHING, NOTHING, 0, 0, 1)),
)
PART: Final = st.tuples(
    st.sampled_from(PARTITIONS), st.lists(SENT, min_size=1, max_size=3).map(tuple)
)
SWITCH: Final = st.builds(Switch, on=st.booleans(), by_header=st.booleans(), by_key=st.booleans())
PRODUCE: Final = st.builds(Produce, st.lists(PART, min_size=1, max_size=3).map(tuple))
STEP: Final = st.one_of(
    PRODUCE,
    PRODUCE,
    PRODUCE,
    st.builds(Again, st.integers(1, 3)),
    st.builds(Delete, st.sampled_from(PARTITIONS), st.integers(1, 4)),
    st.builds(Lose, st.sampled_from(PARTITIONS)),
    SWITCH,
    st.builds(Restart, st.booleans()),
)

Request: TypeAlias = list[tuple[str, list[tuple[model.Batch, Codec]]]]


class Both:
    """The broker and its model."""

    def __init__(self, first: Switch, lasting: DurableDriver | None = None) -> None:
        self.lasting = lasting
        self.driver = Driver(1) if lasting is None else lasting.driver
        create(self.driver, "t", [(1,), (1,)])
        create(self.driver, "u", [(1,)])
        self.model = model.Cluster(
            {"t": model.Settings(), "u": model.Settings(on=False)},
            {name: model.Partition() for name in PARTITIONS},
        )
        self.values = 0
        self.sent: list[Request] = []
        self.take(first)

    def take(self, step: Step) -> None:
        """Do it to both."""
        match step:
            case Produce():
                self.produce(self.placed(step))
            case Again():
                if len(self.sent) >= step.ago:
                    self.produce(self.sent[-step.ago])
            case Delete():
                self.delete(step)
            case Lose():
                self.lose(step.partition)
            case Switch():
                self.switch(step)
            case Restart():
                self.restart(kill=step.kill)

    def placed(self, request: Produce) -> Request:
        """The request in offsets and sequences."""
        ends = {name: each.end for name, each in self.model.partitions.items()}
        sequences = {name: self.next_sequence(name) for name in PARTITIONS}
        found: Request = []
        for name, batches in request.parts:
            placed = []
            for sent in batches:
                batch = _placed(sent, ends[name], sequences[name])
                placed.append((batch, sent.codec))
                ends[name] += batch.count
                sequences[name] += batch.count if batch.producer is not None else 0
            found.append((name, placed))
        return found

    def next_sequence(self, name: str) -> int:
        last = [b for _, b in self.model.partitions[name].batches if b.producer is not None]
        return last[-1].sequence + last[-1].count if last else 0

    def produce(self, request: Request) -> None:
        self.sent.append(request)
        expected = self.model.produce([(name, [b for b, _ in sent]) for name, sent in request])
        parts = [(name, b"".join(_encoded(*each) for each in sent)) for name, sent in request]
        answers = frames.send(self.driver, parts).answers
        # Partitions of one topic stand together in an answer.
        asked = [name for name, _ in request]
        topics = list(dict.fromkeys(name.partition("-")[0] for name in asked))
        order = sorted(range(len(asked)), key=lambda at: topics.index(asked[at].partition("-")[0]))
        assert [name for name, _ in answers] == [asked[at] for at in order]
        for at, (name, answer) in zip(order, answers, strict=True):
            assert _said(answer) == _told(expected[at]), name

    def delete(self, step: Delete) -> None:
        name, _, index = step.partition.partition("-")
        partition = self.model.partitions[step.partition]
        partition.start = min(partition.start + step.records, partition.end)
        self.driver.leader(name, int(index)).delete_records(partition.start)

    def lose(self, partition: str) -> None:
        name, _, index = partition.partition("-")
        known = self.model.partitions[partition]
        if known.batches and known.batches[-1][0] >= known.start:
            first, _ = known.batches.pop()
            assert self.driver.leader(name, int(index)).truncate_to(first)

    def switch(self, step: Switch) -> None:
        self.model.settings["t"] = model.Settings(step.on, step.by_header, step.by_key)
        self.driver.cluster.controller.set_topic_configs(
            "t",
            {
                "check.expected.offsets": str(step.on).lower(),
                "check.expected.offsets.source": "header" if step.by_header else "batch",
                "check.expected.offsets.scope": "key" if step.by_key else "partition",
            },
        )
        self.driver.cluster.scheduler.run_due()

    def restart(self, *, kill: bool) -> None:
        if self.lasting is None:
            return
        if kill:
            self.lasting.kill()
        else:
            self.lasting.stop()
        self.driver = self.lasting.begin()
        self.sent = [request for request in self.sent if self.is_known(request)]
        for name, partition in self.model.partitions.items():
            log = self.driver.leader(name[0], int(name[2])).log
            if kill:  # where the log starts is told by a checkpoint, now and then
                partition.start = min(partition.start, log.log_start_offset)
            assert log.log_start_offset == partition.start

    def is_known(self, request: Request) -> bool:
        """Whether all of it that is in the logs is the last of its producer.

        That is what Kafka's snapshots of producers keep; what else is known depends on them.
        """
        for name, batches in request:
            partition = self.model.partitions[name]
            last = [first for first, each in partition.batches if each.producer is not None][-1:]
            found = {partition.duplicate_of(batch) for batch, _ in batches}
            if not found <= {None, *last}:
                return False
        return True

    def compare(self) -> None:
        """The logs."""
        for name, partition in self.model.partitions.items():
            keys = "".join(batch.keys for _, batch in partition.batches)
            assert stored(self.driver, name) == keys[partition.start :]


def _placed(sent: Sent, upcoming: int, sequence: int) -> model.Batch:
    count = len(sent.keys)
    stated = [_offset(near, upcoming + at) for at, near in enumerate(sent.stated[:count])]
    base = _offset(sent.base, upcoming)
    assert base is not None, "a base offset is a number"
    has_sequence = not isinstance(sent.sequence, str)
    return model.Batch(
        keys=sent.keys,
        base=base,
        deltas=tuple(at + (sent.gap if at == count - 1 else 0) for at in range(count)),
        stated=(*stated, *[-1] * (count - len(stated))),
        producer=7000 if has_sequence else None,
        sequence=sequence + int(sent.sequence) if has_sequence else 0,
    )


def _offset(near: Near, right: int) -> int | None:
    if near == NOTHING:
        return -1
    if near == ZERO:
        return 0
    if near == NO_OFFSET:
        return None
    return right + int(near)


def _encoded(batch: model.Batch, codec: Codec) -> bytes:
    """As it is sent; its keys are its values as well."""
    stated = [
        [] if offset == -1 else [(HEADER, _written(offset, at))]
        for at, offset in enumerate(batch.stated)
    ]
    return Batch(
        values=batch.keys,
        keys=batch.keys,
        at=batch.base,
        deltas=batch.deltas,
        headers=stated,
        codec=codec,
        producer=None if batch.producer is None else (batch.producer, 0, batch.sequence),
    ).encoded


def _written(offset: int | None, at: int) -> bytes | None:
    if offset is None:
        return (None, b"", b"x")[at]
    return int64(offset) if offset < 0 or offset % 2 else b"%d" % offset


def _said(answer: Body) -> tuple[int, int, list[tuple[int, str]]]:
    errors = [
        (each["BatchIndex"], each["BatchIndexErrorMessage"])
        for each in answer["RecordErrors"]
        if answer["ErrorCode"] == model.MISMATCH
    ]
    return answer["ErrorCode"], answer["BaseOffset"], errors


def _told(answer: model.Answer) -> tuple[int, int, list[tuple[int, str]]]:
    texts = []
    for index, expected, upcoming, last in answer.errors:
        of_key = "" if last is None else f", last offset of the key {last}"
        texts.append((index, f"Expected offset {expected}{of_key}, upcoming offset {upcoming}"))
    return answer.code, answer.base, texts


STORY: Final = settings(
    suppress_health_check=[HealthCheck.too_slow],
    # What it explains is longer than the story.
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
STEPS: Final = st.lists(STEP, min_size=1, max_size=12)


@settings(STORY, max_examples=200)
@given(first=SWITCH, steps=STEPS)
def test_the_broker_does_as_the_model(first: Switch, steps: list[Step]) -> None:
    play(Both(first), first, steps)


@settings(STORY, max_examples=100)
@given(first=SWITCH, steps=STEPS)
def test_a_broker_whose_logs_are_in_files_does_as_the_model(
    first: Switch, steps: list[Step]
) -> None:
    play(Both(first, DurableDriver(1)), first, steps)


def play(both: Both, first: Switch, steps: list[Step]) -> None:
    note(repr(first))
    for step in steps:
        note(repr(step))
        both.take(step)
        both.compare()
