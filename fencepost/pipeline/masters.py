"""Where Spark runs: what ``--master`` may be, and whether it is there.

Spark itself finds out after it has started, with pages of Java, and tries for a minute to reach a
master that is not there.
"""

from __future__ import annotations

import re
import socket
from typing import Final

from fencepost.pipeline.needs import CannotRunError

_FORMS: Final = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+")
_STANDALONE: Final = "spark://"
_ANSWER_S: Final = 10.0


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver's own JVM."""
    return master.partition("[")[0] == "local"


def need_master(master: str) -> None:
    """Look whether Spark could run there.

    :raises CannotRunError: When it is no master at all, or a standalone one that does not answer.
    """
    if not _FORMS.fullmatch(master):
        forms = "local[N], spark://HOST:PORT, yarn or k8s://URL"
        raise CannotRunError(f"--master {master}: not {forms}")
    if not master.startswith(_STANDALONE):
        return
    reasons = []
    for address in master.removeprefix(_STANDALONE).split(","):
        reason = _refusal(address)
        if not reason:
            return
        reasons.append(f"{address} ({reason})")
    raise CannotRunError(f"no Spark master answers at {' nor '.join(reasons)}")


def _refusal(address: str) -> str:
    """Why nobody can be reached at ``HOST:PORT``; nothing where somebody can."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return "not HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # no port, no name of a host
        return str(error)
    return ""
