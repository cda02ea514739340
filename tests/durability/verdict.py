"""What a start on damaged files did: repaired, refused, told, or passed over in silence.

`judge` compares with what clients were told before, `judge_accepting` does so where the loss is
accepted, `unnoticed` with what was written down, and `start_again` looks at the start after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.core.events import OF_THE_DISK, Event, Kind
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import PartitionProduceResponse
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import CorruptBatch, crc_ok, iter_headers
from fencepost.storage.files.file_system import StorageFailure
from tests.durability.corruption import Damage
from tests.durability.scenes import Acknowledged, Place, Scene, file_system
from tests.harness.driver import Driver, content
from tests.harness.driver_requests import fetch
from tests.harness.durable_driver import DIR
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced


@dataclass(slots=True)
class Verdict:
    """What a start on damaged files did.

    :ivar outcome: ``whole``: everything is there, and nothing was said; ``healed``: everything is
        there, and an event says what was not; ``refused``, ``told``, ``excepted``.
    :ivar wrong: What may not be, in words; empty where nothing is.
    """

    outcome: str
    wrong: list[str] = field(default_factory=list)


def judge(scene: Scene, harm: Damage) -> Verdict:
    """Start on the damaged files, and compare with what clients were told."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene)
    except DataDirUnusable as refusal:
        text = str(refusal)
        return Verdict("refused", [f"no line: {text!r}"] if "\n" in text or not text else [])
    judged = _Judge(scene, harm, driver)
    for place, told in scene.told.items():
        judged.check(place, told)
    return judged.verdict


def judge_accepting(scene: Scene, harm: Damage) -> list[str]:
    """Start on the damaged files and accept that records are lost; what is wrong then."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene, accepts_loss=True)
    except DataDirUnusable:
        return []
    judged = _Judge(scene, harm, driver)
    wrong = []
    for place, told in scene.told.items():
        if driver.cluster.controller.image.partition(*place) is None or judged.is_of_bytes(place):
            continue
        image = driver.partition(*place)
        if image.leader < 0 and not harm.is_in_the_way():
            wrong.append(f"{place} is offline all the same")
        if image.leader < 0:
            continue
        wrong += judged.other_records(place, told)
        if not _is_led(driver, place):
            if not harm.is_in_the_way():
                wrong.append(f"{place} is offline now")
            continue
        answer = judged.produce(place, batch(b"next"))
        if answer.error_code == 0 and answer.base_offset < told.checkpointed:
            wrong.append(f"offset {answer.base_offset} of {place} is given out twice")
    return wrong


def unnoticed(scene: Scene, harm: Damage) -> list[str]:
    """What a start does not say of records that a damaged segment had, and that were written down.

    Also where another replica has them.
    """
    lost = _lost_records(scene, harm)
    if lost is None:
        return []
    broker_id, place, first = lost
    try:
        events = events_of(scene, harm)
    except DataDirUnusable:
        return []
    for event in events:
        if (event.kind, event.broker) != (Kind.RECORDS_MISSING, broker_id):
            continue
        ranges = event.details["offsets"]
        assert isinstance(ranges, list)
        if (event.topic, event.partition) == place and any(a <= first <= b for a, b in ranges):
            return []
    return [f"no event says that broker {broker_id} misses offset {first} of {place}: {events}"]


def _lost_records(scene: Scene, harm: Damage) -> tuple[int, Place, int] | None:
    """Broker, partition and first offset of what a segment that is cut or gone had; None if none.

    Only of what had to be written down, and was not deleted by a client.
    """
    path = harm.path
    if harm.kind not in ("cut", "delete") or path.suffix != ".log" or path.parent == DIR:
        return None
    before, after = scene.contents[path] or b"", harm.contents.get(path) or b""
    topic, _, index = path.parent.name.rpartition("-")
    place = topic, int(index)
    told = scene.told[place]
    for at, header in iter_headers(before):
        is_cut = at + header.size > len(after)
        if is_cut and told.start <= header.last_offset < told.checkpointed:
            return int(path.parts[-3].removeprefix("broker-")), place, header.base_offset
    return None


def events_of(scene: Scene, harm: Damage) -> list[Event]:
    """What a start on these files tells."""
    return list(_start(file_system(harm.contents), scene).cluster.events.at_start)


def start_again(scene: Scene, harm: Damage) -> list[str]:
    """Start on the damaged files, stop in order, and start once more; what that finds still."""
    files = file_system(harm.contents)
    try:
        driver = _start(files, scene)
    except DataDirUnusable:
        return []
    offline = {p for p in scene.told if _is_offline(driver, p)}
    driver.cluster.close()
    files.end_process()
    driver = _start(files, scene)
    return [
        f"{event.kind} again: {event.topic}-{event.partition} {event.details}"
        for event in driver.cluster.events.at_start
        if event.kind is not Kind.STORAGE_FAILED and (event.topic, event.partition) not in offline
    ]


def _is_led(driver: Driver, place: Place) -> bool:
    return driver.partition(*place).leader >= 0


def _is_offline(driver: Driver, place: Place) -> bool:
    image = driver.cluster.controller.image.partition(*place)
    return image is None or image.leader < 0 or bool(image.failed)


def _start(files: FaultyFileSystem, scene: Scene, *, accepts_loss: bool = False) -> Driver:
    data_dir = open_data_dir(
        files, DIR, broker_ids=range(1, 4), sync=False, accepts_loss=accepts_loss
    )
    configs = {"min.insync.replicas": "2" if scene.factor > 1 else "1"}
    return Driver(3, configs, data_dir=data_dir)


class _Judge:
    def __init__(self, scene: Scene, harm: Damage, driver: Driver) -> None:
        self.scene = scene
        self.harm = harm
        self.driver = driver
        self.events = list(driver.cluster.events.at_start)
        driver.cluster.events.listeners.append(self.events.append)
        self.verdict = Verdict("healed" if self.events else "whole")

    def check(self, place: Place, told: Acknowledged) -> None:
        name = f"{place[0]}-{place[1]}"
        image = self.driver.cluster.controller.image
        if image.partition(*place) is None:
            self._excuse(place, f"{name} is not there")
            return
        if self.driver.partition(*place).leader < 0:
            self._excuse(place, f"{name} is offline")
            return
        start, found, stopped = self.read(place)
        if stopped:
            self._reader_noticed(place, f"{name}: {stopped}")
            return
        missing = [o for o in told.values if o >= told.start and found.get(o) != told.values[o]]
        if missing:
            self._lost(
                place, told, f"{name} lacks or has other records at {_short(missing)}", missing
            )
        elif start > told.start:
            self._excuse(place, f"{name} starts at {start}, not {told.start}")
        doubled = [o for o in found if o >= told.end]
        if doubled:
            self._excuse(place, f"{name} has records that no client sent at {_short(doubled)}")
        self._check_in_sync_replicas(place, told, start)
        if _is_led(self.driver, place):
            self._check_producer(place, told, bool(missing))
        if _is_led(self.driver, place):
            self._check_next(place, told)

    def read(self, place: Place) -> tuple[int, dict[int, bytes | None], str]:
        leader = self.driver.leader(*place)
        start, offset = leader.log.log_start_offset, leader.log.log_start_offset
        found: dict[int, bytes | None] = {}
        while offset < leader.high_watermark:
            if not _is_led(self.driver, place):
                return start, found, f"offline at {offset}"
            answer = fetch(self.driver, place[0], offset, index=place[1])
            if answer.error_code:
                return start, found, f"error {answer.error_code} at {offset}"
            before = offset
            for buffer in answer.records or ():
                try:
                    for at, header in iter_headers(buffer):
                        if not crc_ok(buffer, at, header):
                            return start, found, f"CRC at {offset}"
                        for record in iter_records(buffer, at):
                            found[record.offset] = record.value
                        offset = max(offset, header.last_offset + 1)
                except CorruptBatch as error:
                    return start, found, str(error)
            if offset == before:
                break
        return start, found, ""

    def other_records(self, place: Place, told: Acknowledged) -> list[str]:
        """What is served of a partition whose losses are accepted, and was not written so."""
        _, found, _ = self.read(place)
        wrong = []
        others = [o for o in found if o in told.values and found[o] != told.values[o]]
        if others:
            wrong.append(f"{place} has other records at {_short(others)}")
        lacking = [o for o in told.values if o >= told.start and o not in found]
        if lacking and self.scene.factor > 1:
            wrong.append(f"{place} lacks {_short(lacking)}")
        return wrong

    def _check_producer(self, place: Place, told: Acknowledged, is_missing: bool) -> None:
        """What the producer sends again is known to be there."""
        if told.last is None or is_missing:
            return
        offset, sent = told.last
        answer = self.produce(place, sent)
        if (answer.error_code, answer.base_offset) != (0, offset):
            self._excuse(place, f"{place} takes a batch twice: {answer.error_code}")

    def _check_in_sync_replicas(self, place: Place, told: Acknowledged, start: int) -> None:
        """Any of them may lead next."""
        if self.scene.factor == 1 or self.is_of_bytes(place):
            return
        for broker_id in self.driver.partition(*place).isr:
            replica = self.driver.broker(broker_id).replicas.get(place)
            if replica is None:
                continue
            try:
                found = {offset: value for offset, _, value in content(replica)}
            except StorageFailure:
                continue  # it is told, and no record is served
            lacking = [o for o in told.values if o >= start and found.get(o) != told.values[o]]
            if lacking:
                self.verdict.wrong.append(
                    f"{place} on broker {broker_id}, which is in sync, lacks {_short(lacking)}"
                )

    def _check_next(self, place: Place, told: Acknowledged) -> None:
        answer = self.produce(place, batch(b"next"))
        if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            self._excuse(place, f"{place} can't be written")
        elif answer.error_code:
            self.verdict.wrong.append(f"{place}: error {answer.error_code} for a produce")
        elif answer.base_offset < told.end:
            text = f"offset {answer.base_offset} of {place} is given out twice"
            if self.scene.factor > 1 or answer.base_offset < told.checkpointed:
                self.verdict.wrong.append(text)
            else:
                self._except(place, text)

    def produce(self, place: Place, sent: bytearray) -> PartitionProduceResponse:
        leader = self.driver.leader(*place).broker_id
        request = produce_request((*place, bytearray(sent)), acks=-1)
        return produced(self.driver.send(leader, "produce", 12, request).response)

    # -- what excuses what -----------------------------------------------------------------------

    def _lost(self, place: Place, told: Acknowledged, text: str, missing: list[int]) -> None:
        if self.scene.factor > 1 and not self.is_of_bytes(place):
            self.verdict.wrong.append(text)
        elif min(missing) >= told.checkpointed:
            self._except(place, text)
        else:
            self._excuse(place, text)

    def _except(self, place: Place, text: str) -> None:
        """At RF 1 after a kill, behind all checkpoints."""
        if self.scene.is_clean and not self.is_of_bytes(place):
            self.verdict.wrong.append(text)
        elif not self._is_told(place):
            self._set("excepted")
        else:
            self._set("told")

    def _reader_noticed(self, place: Place, text: str) -> None:
        if self.is_of_bytes(place) or self._is_told(place):
            self._set("told")
        else:
            self.verdict.wrong.append(f"only a reader notices: {text}")

    def _excuse(self, place: Place, text: str) -> None:
        if self._is_told(place) or self.is_of_bytes(place):
            self._set("told")
        else:
            self.verdict.wrong.append(text)

    def is_of_bytes(self, place: Place) -> bool:
        """Bytes within a segment are the business of the readers' checksums and of the audit."""
        harm = self.harm
        return (
            harm.concerns_bytes_of_a_segment() and harm.path.parent.name == f"{place[0]}-{place[1]}"
        )

    def _is_told(self, place: Place) -> bool:
        of_the_disk = (event for event in self.events if event.kind in OF_THE_DISK)
        return any(_names(event, place) for event in of_the_disk)

    def _set(self, outcome: str) -> None:
        order = ("whole", "healed", "excepted", "told")
        self.verdict.outcome = max(self.verdict.outcome, outcome, key=order.index)


def _names(event: Event, place: Place) -> bool:
    """Whether an event names a partition."""
    return (event.topic, event.partition) == place or f"{place[0]}-{place[1]}" in str(event.details)


def _short(offsets: Iterable[int]) -> str:
    found = sorted(offsets)
    return f"{found[0]} to {found[-1]}"
