"""The file system that a log lies in."""

import pytest

from tests.harness.faulty_file_system import FaultyFileSystem
from tests.storage.files.mirror import DIRECTORY


@pytest.fixture
def files() -> FaultyFileSystem:
    files = FaultyFileSystem()
    files.make_dirs(DIRECTORY.parent)
    files.settle()
    return files
