"""The environment of ``fencepost serve``: variables that describe a service of its name.

Where a service is named ``fencepost``, Kubernetes and GitLab put ``FENCEPOST_PORT=tcp://...`` and
the like into the environment of every container beside it, as Docker's links did.
"""

import re
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "FENCEPOST_"
_PORT_FORM: Final = re.compile(r"(?:tcp|udp|sctp)://")
_INJECTED: Final = re.compile(
    r"(?:[A-Z0-9_]+_)?"  # of a service whose name goes on, such as fencepost-inside
    r"(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?"
    r"|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR|START|END))?)"
    r"|NAME|ENV_.*"
)
"""Names without the service's own, by which Kubernetes and Docker's links describe it."""


def without_service_variables(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables that begin with a prefix, but for those that describe a service of that name.

    :param prefix: Such as ``FENCEPOST_``.
    """
    return {
        name: text
        for name, text in environment.items()
        if name.startswith(prefix) and not _is_injected(name.removeprefix(prefix), text)
    }


def _is_injected(name: str, text: str) -> bool:
    ends_so = name == "PORT" or name.endswith("_PORT")
    return bool(_INJECTED.fullmatch(name) or (ends_so and _PORT_FORM.match(text)))
