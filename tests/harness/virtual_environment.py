"""A virtual environment that has the packages of this one without a download."""

from __future__ import annotations

import sys
from pathlib import Path


def bare_python(folder: Path, *, with_pip: bool = False) -> Path:
    """A Python with the packages of this one, but for those installed in place, as fencepost is.

    Folders that a ``.pth`` file adds are searched for packages, not for other ``.pth`` files.
    """
    import venv

    venv.create(folder, symlinks=True, with_pip=with_pip)
    library = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    added = [path for path in sys.path if Path(path).name == "site-packages"]
    (library / "site-packages" / "others.pth").write_text("\n".join(added))
    return folder / "bin" / "python"
