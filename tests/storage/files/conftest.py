"""The file system that a log lies in."""

import pytest

from fencepost.storage.files.failing import FailingFiles
from tests.storage.files.mirror import DIRECTORY


@pytest.fixture
def files() -> FailingFiles:
    files = FailingFiles()
    files.make_dirs(DIRECTORY.parent)
    files.settle()
    return files
