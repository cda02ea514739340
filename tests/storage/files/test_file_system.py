"""What every file system does: the real one, and the one in memory."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import pytest

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.files.file_system import File, FileSystem, RealFileSystem
from tests.harness.faulty_file_system import FaultyFileSystem, fails_with

NOW = 1_700_000_000_123


@pytest.fixture(params=["real", "in memory"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def files(kind: str) -> FileSystem:
    return RealFileSystem() if kind == "real" else FaultyFileSystem(lambda: NOW)


@pytest.fixture
def folder(kind: str, files: FileSystem, tmp_path: Path) -> PurePath:
    """An empty directory."""
    if kind == "real":
        return tmp_path
    made = PurePath("/somewhere/below")
    files.make_dirs(made)
    return made


@pytest.fixture
def file(files: FileSystem, folder: PurePath) -> File:
    """A new, empty file."""
    return files.open(folder / "file")


def written(file: File) -> bytes:
    return file.read(0, file.size)


def write(files: FileSystem, path: PurePath, data: bytes) -> None:
    files.write_atomic(path, data, sync=False)


# -- a file ---------------------------------------------------------------------------------------


def test_a_file_is_made_when_it_is_opened(files: FileSystem, folder: PurePath) -> None:
    path = folder / "file"
    assert not files.exists(path)
    file = files.open(path)
    assert files.exists(path)
    assert not files.is_dir(path)
    assert (file.size, files.size(path), files.read(path)) == (0, 0, b"")


def test_what_is_there_is_kept(files: FileSystem, folder: PurePath) -> None:
    write(files, folder / "file", b"before")
    file = files.open(folder / "file")
    assert file.size == 6
    file.append([b"+after"])
    assert written(file) == files.read(folder / "file") == b"before+after"
    assert files.size(folder / "file") == 12


@pytest.mark.parametrize(
    "buffers",
    [
        [],
        [b""],
        [b"one"],
        [b"one", b"", bytearray(b"two"), memoryview(b"-three-")[1:-1]],
        [b"%d," % number for number in range(3000)],
    ],
    ids=["nothing", "empty", "one", "kinds", "many"],
)
def test_buffers_are_appended_in_order(
    files: FileSystem, folder: PurePath, file: File, buffers: Sequence[Buffer]
) -> None:
    file.append([b"begin|"])
    file.append(buffers)
    file.append([b"|end"])
    want = b"begin|" + b"".join(buffers) + b"|end"
    assert written(file) == files.read(folder / "file") == want
    assert file.size == len(want)


def test_what_is_appended_may_be_changed_afterwards(file: File) -> None:
    data = bytearray(b"as it was")
    file.append([data])
    data[:] = b"and is no more"
    assert written(file) == b"as it was"


def test_parts_are_read(file: File) -> None:
    file.append([b"0123456789"])
    assert file.read(3, 6) == b"345"
    assert file.read(0, 10) == b"0123456789"
    assert file.read(4, 4) == b""


@pytest.mark.parametrize(("start", "end"), [(0, 11), (9, 12), (10, 11), (20, 30)])
def test_reading_past_the_end_is_an_error(file: File, start: int, end: int) -> None:
    file.append([b"0123456789"])
    with fails_with(errno.EIO):
        file.read(start, end)


def test_an_end_is_cut_off_and_another_written(
    files: FileSystem, folder: PurePath, file: File
) -> None:
    file.append([b"0123456789"])
    file.truncate(4)
    assert (file.size, written(file)) == (4, b"0123")
    file.append([b"abc"])
    assert files.read(folder / "file") == b"0123abc"
    file.sync()
    assert files.read(folder / "file") == b"0123abc"


def test_two_that_have_a_file_open_read_the_same(files: FileSystem, folder: PurePath) -> None:
    one, other = files.open(folder / "file"), files.open(folder / "file")
    one.append([b"shared"])
    assert other.read(0, 6) == b"shared"


@pytest.mark.parametrize(
    "use",
    [
        lambda file: file.append([b"data"]),
        lambda file: file.read(0, 1),
        lambda file: file.truncate(0),
        lambda file: file.sync(),
    ],
    ids=["append", "read", "truncate", "sync"],
)
def test_a_closed_file_is_of_no_use(file: File, use: Callable[[File], None]) -> None:
    file.append([b"data"])
    file.close()
    file.close()
    with fails_with(errno.EBADF):
        use(file)


def test_closing_leaves_the_bytes(files: FileSystem, folder: PurePath, file: File) -> None:
    file.append([b"data"])
    file.close()
    assert files.read(folder / "file") == b"data"


# -- names ----------------------------------------------------------------------------------------


def test_names_come_in_order(files: FileSystem, folder: PurePath) -> None:
    assert files.names(folder) == ()
    for name in ("b", "a", "c-0", "B"):
        files.open(folder / name).close()
    files.make_dirs(folder / "c")
    assert files.names(folder) == ("B", "a", "b", "c", "c-0")


def test_a_renamed_file_stays_open(files: FileSystem, folder: PurePath, file: File) -> None:
    file.append([b"one"])
    files.rename(folder / "file", folder / "new")
    file.append([b"two"])
    assert files.names(folder) == ("new",)
    assert files.read(folder / "new") == written(file) == b"onetwo"


def test_a_rename_replaces_a_file(files: FileSystem, folder: PurePath, file: File) -> None:
    file.append([b"new"])
    write(files, folder / "old", b"old")
    replaced = files.open(folder / "old")
    files.rename(folder / "file", folder / "old")
    assert files.names(folder) == ("old",)
    assert files.read(folder / "old") == b"new"
    assert written(replaced) == b"old"


def test_a_removed_file_stays_open(files: FileSystem, folder: PurePath, file: File) -> None:
    file.append([b"data"])
    files.remove(folder / "file")
    assert not files.exists(folder / "file")
    assert written(file) == b"data"
    assert files.open(folder / "file").size == 0


def test_directories_are_made_and_renamed(files: FileSystem, folder: PurePath) -> None:
    files.make_dirs(folder / "a" / "b" / "c")
    files.make_dirs(folder / "a" / "b")
    write(files, folder / "a" / "b" / "c" / "file", b"data")
    file = files.open(folder / "a" / "b" / "c" / "file")
    files.rename(folder / "a" / "b", folder / "z")
    assert files.names(folder) == ("a", "z")
    assert files.names(folder / "a") == ()
    assert files.is_dir(folder / "z" / "c")
    assert files.read(folder / "z" / "c" / "file") == written(file) == b"data"


def test_a_rename_takes_the_place_of_an_empty_directory_only(
    files: FileSystem, folder: PurePath
) -> None:
    for name in ("one", "two"):
        write_in(files, folder / name)
    files.make_dirs(folder / "empty")
    files.rename(folder / "one", folder / "empty")
    assert files.names(folder / "empty") == ("file",)
    with fails_with(errno.ENOTEMPTY):
        files.rename(folder / "two", folder / "empty")


def test_what_is_renamed_to_its_own_name_stays(files: FileSystem, folder: PurePath) -> None:
    write_in(files, folder / "dir")
    files.rename(folder / "dir", folder / "dir")
    files.rename(folder / "dir" / "file", folder / "dir" / "file")
    assert files.names(folder) == ("dir",)
    assert files.read(folder / "dir" / "file") == b"data"


def write_in(files: FileSystem, folder: PurePath) -> None:
    files.make_dirs(folder)
    write(files, folder / "file", b"data")


def test_a_tree_is_removed(files: FileSystem, folder: PurePath) -> None:
    write_in(files, folder / "a")
    write_in(files, folder / "a" / "b")
    files.remove_tree(folder / "a")
    files.remove_tree(folder / "a")
    assert files.names(folder) == ()


Refused = tuple[Callable[[FileSystem, PurePath], object], type[OSError]]
REFUSED: dict[str, Refused] = {
    "open in no directory": (lambda f, at: f.open(at / "no" / "file"), FileNotFoundError),
    "open in a file": (lambda f, at: f.open(at / "file" / "file"), NotADirectoryError),
    "open a directory": (lambda f, at: f.open(at / "dir"), IsADirectoryError),
    "names of nothing": (lambda f, at: f.names(at / "no"), FileNotFoundError),
    "names of a file": (lambda f, at: f.names(at / "file"), NotADirectoryError),
    "size of nothing": (lambda f, at: f.size(at / "no"), FileNotFoundError),
    "time of nothing": (lambda f, at: f.modified_ms(at / "no"), FileNotFoundError),
    "new time of nothing": (lambda f, at: f.set_modified_ms(at / "no", 0), FileNotFoundError),
    "read nothing": (lambda f, at: f.read(at / "no"), FileNotFoundError),
    "read a directory": (lambda f, at: f.read(at / "dir"), IsADirectoryError),
    "write in no directory": (
        lambda f, at: f.write_atomic(at / "no" / "file", b"", sync=True),
        FileNotFoundError,
    ),
    "rename nothing": (lambda f, at: f.rename(at / "no", at / "new"), FileNotFoundError),
    "rename to no directory": (
        lambda f, at: f.rename(at / "file", at / "no" / "file"),
        FileNotFoundError,
    ),
    "rename a file to a directory": (
        lambda f, at: f.rename(at / "file", at / "dir"),
        IsADirectoryError,
    ),
    "rename a directory to a file": (
        lambda f, at: f.rename(at / "dir", at / "file"),
        NotADirectoryError,
    ),
    "remove nothing": (lambda f, at: f.remove(at / "no"), FileNotFoundError),
    "make what is a file": (lambda f, at: f.make_dirs(at / "file"), FileExistsError),
    "make in a file": (lambda f, at: f.make_dirs(at / "file" / "dir"), NotADirectoryError),
    "sync no directory": (lambda f, at: f.sync_dir(at / "no"), FileNotFoundError),
    "sync a file as a directory": (lambda f, at: f.sync_dir(at / "file"), NotADirectoryError),
    "lock in no directory": (lambda f, at: f.lock(at / "no" / "lock"), FileNotFoundError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(files: FileSystem, folder: PurePath, name: str) -> None:
    use, error = REFUSED[name]
    write(files, folder / "file", b"data")
    files.make_dirs(folder / "dir")
    with pytest.raises(error):
        use(files, folder)
    assert files.names(folder) == ("dir", "file")
    assert files.read(folder / "file") == b"data"


def test_a_directory_is_not_removed_as_a_file(files: FileSystem, folder: PurePath) -> None:
    files.make_dirs(folder / "dir")
    with pytest.raises((IsADirectoryError, PermissionError)):
        files.remove(folder / "dir")
    assert files.is_dir(folder / "dir")


def test_what_lies_in_a_file_is_not_there(files: FileSystem, folder: PurePath) -> None:
    write(files, folder / "file", b"data")
    assert not files.exists(folder / "file" / "file")
    assert not files.is_dir(folder / "file" / "file")
    assert not files.is_dir(folder / "no")


# -- whole files, times, locks --------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_written_aside(files: FileSystem, folder: PurePath, sync: bool) -> None:
    path = folder / "checkpoint"
    files.write_atomic(path, b"long at first", sync=sync)
    files.write_atomic(path, memoryview(b"short"), sync=sync)
    assert files.names(folder) == ("checkpoint",)
    assert files.read(path) == b"short"


def test_what_a_crash_left_aside_is_written_over(files: FileSystem, folder: PurePath) -> None:
    write(files, folder / "checkpoint.tmp", b"torn, but longer than the next")
    files.write_atomic(folder / "checkpoint", b"whole", sync=True)
    assert files.names(folder) == ("checkpoint",)
    assert files.read(folder / "checkpoint") == b"whole"


def test_what_cannot_take_its_place_is_not_left_aside(files: FileSystem, folder: PurePath) -> None:
    files.make_dirs(folder / "checkpoint")
    with pytest.raises(IsADirectoryError):
        files.write_atomic(folder / "checkpoint", b"data", sync=True)
    assert files.names(folder) == ("checkpoint",)


def test_a_file_is_as_old_as_it_is_said_to_be(
    files: FileSystem, folder: PurePath, file: File
) -> None:
    path = folder / "file"
    file.append([b"data"])
    files.set_modified_ms(path, 12_345)
    assert files.modified_ms(path) == 12_345
    file.append([b"more"])
    assert files.modified_ms(path) >= NOW


def test_only_one_has_a_lock(files: FileSystem, folder: PurePath) -> None:
    lock = files.lock(folder / ".lock")
    with pytest.raises(BlockingIOError):
        files.lock(folder / ".lock")
    with pytest.raises(BlockingIOError):  # nor after the one who was refused has let go of it
        files.lock(folder / ".lock")
    lock.release()
    lock.release()
    other = files.lock(folder / ".lock")
    lock.release()
    with pytest.raises(BlockingIOError):
        files.lock(folder / ".lock")
    other.release()
    assert files.names(folder) == (".lock",)
