"""This package as a zip file, for executors that have another version of it, or none."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import fencepost

MAIN: Final = """# What spark-submit runs: the command line of fencepost.
import sys

from fencepost.cli import main

sys.exit(main())
"""
_ROOT: Final = Path(fencepost.__file__).parent
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


def write_package(target: Path) -> Path:
    """Write this package, as it runs here, into a zip file; the same bytes every time.

    :param target: The file. Its name has to end in ``.zip``: a wheel that is called so does no good
        on executors.
    """
    with zipfile.ZipFile(target, "w") as made:
        for path in sorted(_ROOT.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = zipfile.ZipInfo(path.relative_to(_ROOT.parent).as_posix(), _LONG_AGO)
                made.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
