"""The command that installs an extra where this package was installed from."""

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_PACKAGE: Final = "fencepost"


def install_command(extra: str) -> str:
    """A command that installs an extra beside this package, as it was installed itself.

    pip keeps where a package came from (PEP 610): a folder, which may be used in place, or a
    wheel. Without that it came from an index, or is a copy that a job has brought along.
    """
    try:
        origin = _origin(distribution(_PACKAGE))
    except PackageNotFoundError:
        origin = {}
    return shlex.join([sys.executable, "-m", "pip", "install", *_requirement(extra, origin)])


def _origin(package: Distribution) -> dict[str, Any]:
    origin: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    return origin


def _requirement(extra: str, origin: dict[str, Any]) -> list[str]:
    url = str(origin.get("url", ""))
    if origin.get("dir_info", {}).get("editable"):
        return ["--editable", f"{unquote(urlsplit(url).path)}[{extra}]"]
    name = f"{_PACKAGE}[{extra}]"
    return [f"{name} @ {url}" if url else name]
