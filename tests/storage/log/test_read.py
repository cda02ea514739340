import pytest

from fencepost.protocol.records import iter_headers
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, OffsetOutOfRange, ReadResult
from tests.harness.logs import Kind, T, append, new_log, only, read_all, records_of
from tests.harness.records import batch


@pytest.fixture
def log() -> Log:
    """Three batches of two records and 177 bytes each, as in Kafka's recorded answers."""
    log = new_log()
    for n in range(3):
        append(log, batch((T + n, b"k", b"v" * 50), (T + n, b"k", b"w" * 50)))
    return log


def read(
    log: Log,
    offset: int,
    max_bytes: int = 1 << 20,
    *,
    upper: int = 6,
    min_one: bool = True,
) -> tuple[int, list[tuple[int, int]], int]:
    """Bytes, whole batches, and bytes of a partial one."""
    result = log.read(offset, max_bytes=max_bytes, upper_bound=upper, min_one_batch=min_one)
    data = b"".join(result.buffers)
    assert len(data) == result.size
    headers = [header for _, header in iter_headers(data)]
    rest = len(data) - sum(header.size for header in headers)
    return len(data), [(header.base_offset, header.last_offset) for header in headers], rest


ALL = [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (0, (531, ALL, 0)),
        (1, (531, ALL, 0)),
        (2, (354, ALL[1:], 0)),
        (5, (177, ALL[2:], 0)),
        (6, (0, [], 0)),
    ],
)
def test_from_the_batch_that_holds_the_offset(
    log: Log, offset: int, answer: tuple[int, list[tuple[int, int]], int]
) -> None:
    assert read(log, offset) == answer


@pytest.mark.parametrize(
    ("max_bytes", "answer"),
    [
        (0, (177, ALL[:1], 0)),
        (1, (177, ALL[:1], 0)),
        (70, (177, ALL[:1], 0)),
        (177, (177, ALL[:1], 0)),
        (200, (200, ALL[:1], 23)),
        (400, (400, ALL[:2], 46)),
        (531, (531, ALL, 0)),
    ],
)
def test_the_first_batch_comes_whole_and_later_ones_are_cut(
    log: Log, max_bytes: int, answer: tuple[int, list[tuple[int, int]], int]
) -> None:
    assert read(log, 0, max_bytes) == answer


@pytest.mark.parametrize(("max_bytes", "size"), [(0, 0), (176, 0), (177, 177), (200, 200)])
def test_without_min_one_batch_nothing_comes_that_does_not_fit(
    log: Log, max_bytes: int, size: int
) -> None:
    assert read(log, 0, max_bytes, min_one=False)[0] == size


@pytest.mark.parametrize("offset", [-2, -1, 7, 100, 2**62])
def test_offsets_out_of_range(log: Log, offset: int) -> None:
    with pytest.raises(OffsetOutOfRange):
        read(log, offset)


def test_an_empty_log() -> None:
    log = new_log(start_offset=4)
    assert read_all(log) == ReadResult((), 0, 4)
    for offset in (3, 5):
        with pytest.raises(OffsetOutOfRange):
            read(log, offset)


@pytest.mark.parametrize(
    ("upper", "count"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)]
)
def test_only_batches_that_end_before_the_upper_bound(log: Log, upper: int, count: int) -> None:
    assert read(log, 0, upper=upper)[1] == ALL[:count]
    assert read(log, 0, max_bytes=1, upper=upper)[1] == ALL[: min(count, 1)]


def test_above_the_upper_bound_there_is_nothing(log: Log) -> None:
    assert read(log, 4, upper=2) == (0, [], 0)


def test_before_the_log_start_nothing_is_read(log: Log) -> None:
    log.advance_log_start(3)
    with pytest.raises(OffsetOutOfRange):
        read(log, 2)
    assert read(log, 3)[1] == ALL[1:]


def test_a_read_ends_with_its_segment() -> None:
    log = new_log()
    for _ in range(2):
        append(log)
        append(log)
        log.roll(T)
    assert [read(log, offset, upper=4)[1] for offset in range(4)] == [
        [(0, 0), (1, 1)],
        [(1, 1)],
        [(2, 2), (3, 3)],
        [(3, 3)],
    ]
    assert read_all(log, 4).size == 0


def test_size_between() -> None:
    log = new_log()
    for _ in range(4):
        append(log)
        log.roll(T)
    size = len(batch())
    assert log.size_between(0, 4) == 4 * size
    assert log.size_between(1, 3) == 2 * size
    assert log.size_between(3, 3) == 0
    assert log.size_between(3, 1) == 0


def test_many_small_batches_are_joined_and_read_the_same() -> None:
    log, plain = new_log(), new_log(LogConfig(segment_bytes=300))
    for n in range(200):
        for each in (log, plain):
            append(each, batch((T + n, b"%d" % n, b"v")))
    assert records_of(log) == records_of(plain)
    assert len(read_all(log).buffers) < 20
    for offset in (0, 63, 64, 127, 191, 199):
        assert read(log, offset, upper=200)[1] == [(n, n) for n in range(offset, 200)]
        for max_bytes in (100, 1_000, 5_000):
            size, headers, rest = read(log, offset, max_bytes, upper=200)
            assert size == min(max_bytes, log.size_between(offset, 200))
            assert headers == [(n, n) for n in range(offset, offset + len(headers))]
            assert rest < 100


@pytest.mark.parametrize("keep", [0, 1, 63, 64, 65, 100, 128, 149])
def test_joined_batches_can_be_cut(keep: int) -> None:
    log = new_log()
    for n in range(150):
        append(log, batch((T, b"%03d" % n, b"v")))
    log.truncate_to(keep)
    for n in range(100):
        append(log, batch((T, b"%03d" % n, b"w")))
    records = records_of(log)
    assert [record.offset for record in records] == list(range(keep + 100))
    assert [record.key for record in records] == [b"%03d" % n for n in [*range(keep), *range(100)]]


@only(Kind.MEMORY, Kind.RECENT)
def test_large_batches_are_not_joined() -> None:
    log = new_log()
    datas = [batch((T, None, b"v" * 1_000)) for _ in range(80)]
    for data in datas:
        append(log, data)
    assert all(kept is given for kept, given in zip(read_all(log).buffers, datas, strict=True))


@only(Kind.MEMORY)
def test_a_large_batch_interrupts_a_run_of_small_ones() -> None:
    log = new_log()
    big = batch((T, None, b"v" * 5_000))
    for n in range(70):
        append(log)
        if n == 40:
            append(log, big)
    assert any(buffer is big for buffer in read_all(log).buffers)
    assert len(records_of(log)) == 71


@only(Kind.MEMORY, Kind.RECENT)
def test_a_run_of_small_ones_that_was_cut_off_is_forgotten() -> None:
    log = new_log()
    big = batch((T, None, b"v" * 5_000))
    append(log, big)
    for _ in range(63):
        append(log)
    log.truncate_to(1)
    append(log)
    assert read_all(log).buffers[0] is big
