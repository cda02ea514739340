"""The URLs of ``--remote``: their validation, and the stores that they name.

    memory:                   in this process
    file:///FOLDER            a folder, created if it does not exist
    s3://BUCKET[/PREFIX]      an existing bucket

Further settings of S3 come from the environment in the names of AWS (``AWS_ENDPOINT``,
``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ...), or from the URL's query, which takes precedence, in the
same names without ``AWS_`` and in lower case. A query may contain a secret, and so may a user: no
message repeats a query, or the user of a URL.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStoreMethods, RetryConfig, S3Config

MEMORY: Final = "memory"
SCHEMES: Final = (MEMORY, "file", "s3")
FORMS: Final = "memory:, file:///FOLDER or s3://BUCKET[/PREFIX]"
_ENDPOINTS: Final = ("aws_endpoint_url_s3", "endpoint_url", "endpoint")
_RETRIES: Final = 2
_RETRY_FOR_S: Final = 10
_REQUEST_TIMEOUT: Final = "10s"
_CONNECT_TIMEOUT: Final = "3s"


class RemoteUnavailable(OSError):
    """A remote tier can't be used; the message is one readable line."""


def remote_problem(url: str) -> str | None:
    """Why the text of a URL is invalid; None if it is valid."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"is not {FORMS}"
    if parts.scheme not in SCHEMES or parts.fragment:
        return f"is not {FORMS}"
    if parts.scheme == MEMORY and (parts.netloc or parts.path.strip("/") or parts.query):
        return "names more than memory:, in which there are no places"
    if parts.scheme == "file" and (parts.netloc or parts.query or not parts.path.startswith("/")):
        return "is not file:///FOLDER, with the folder from the root on"
    if parts.scheme == "s3" and not parts.netloc:
        return "names no bucket: it is not s3://BUCKET[/PREFIX]"
    return None


def is_in_memory(url: str) -> bool:
    """Whether the store of a URL is in this process."""
    return urlsplit(url).scheme == MEMORY


def open_remote(url: str, environment: Mapping[str, str]) -> "ObjectStoreMethods":
    """Open the store that a URL names, and check that it can be used.

    :param url: A valid one, see `remote_problem`, that names a place outside this process.
    :raises RemoteUnavailable: When a folder can't be written to, or a bucket does not exist or
        refuses access, or obstore is not installed.
    """
    require_obstore()
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return _open_bucket(parts, environment)
    return _open_folder(url, Path(unquote(parts.path)))


def require_obstore() -> None:
    """Look for the package of the extra ``tier``.

    :raises RemoteUnavailable: When it is missing.
    """
    from importlib.util import find_spec

    from fencepost.broker.server.extras import install_command

    if find_spec("obstore") is None:
        raise RemoteUnavailable(
            "a tier in a folder or in S3 needs the package obstore, which is not installed:"
            f" install it with {install_command('tier')}"
        )


def first_line(error: BaseException) -> str:
    """The message of an error of obstore, without its lines about causes."""
    text = str(error).strip()
    from fencepost.protocol.shown_text import without_user_infos

    line = text.splitlines()[0].rstrip(" :") if text else type(error).__name__
    return without_user_infos(line)


def _open_folder(url: str, folder: Path) -> "ObjectStoreMethods":
    import tempfile

    from obstore.store import LocalStore

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        raise RemoteUnavailable(f"can't write to the tier {url}: {why}") from error
    return LocalStore(folder, automatic_cleanup=True)


def _open_bucket(parts: SplitResult, environment: Mapping[str, str]) -> "ObjectStoreMethods":
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    from fencepost.protocol.shown_text import without_user_info

    bucket, prefix = parts.netloc, unquote(parts.path).strip("/")
    where = without_user_info(f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}")
    config = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        store = S3Store(
            bucket,
            prefix=prefix or None,
            config=cast("S3Config", config),
            client_options=_client_options(config, environment),
            retry_config=_retry_config(),
        )
        # One request, which needs the bucket and the permission to list it.
        next(iter(store.list(chunk_size=1)), None)
    except (BaseError, OSError, ValueError) as error:
        why = "there is no such bucket" if "NoSuchBucket" in str(error) else first_line(error)
        raise RemoteUnavailable(f"can't use the tier {where}: {why}") from error
    return store


def _client_options(config: Mapping[str, str], environment: Mapping[str, str]) -> "ClientConfig":
    """Timeouts, and plain HTTP only if the URL of the endpoint says so."""
    endpoints = [config.get(key, "") for key in _ENDPOINTS]
    if not any(endpoints):
        endpoints = [
            environment.get(f"AWS_{key.removeprefix('aws_').upper()}", "") for key in _ENDPOINTS
        ]
    options: ClientConfig = {"timeout": _REQUEST_TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT}
    if any(endpoint.startswith("http://") for endpoint in endpoints):
        options["allow_http"] = True
    return options


def _retry_config() -> "RetryConfig":
    """Few retries, for short outages: the caller decides about later ones."""
    from datetime import timedelta

    return {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_FOR_S)}
