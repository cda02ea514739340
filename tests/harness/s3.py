"""A real S3 server process: moto's, with its buckets in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import httpx

from tests.harness.process import start

READY_S: Final = 30.0
_SERVE: Final = """
import logging
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.port, flush=True)
server.serve_forever()
"""
_SIGNED: Final = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request,"
    " SignedHeaders=host, Signature=none"
}
"""What moto wants to see; it checks no signature."""


@dataclass(frozen=True, slots=True)
class S3:
    """Where it listens; any credentials will do."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to use it."""
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "not-shown",
            "AWS_REGION": "us-east-1",
        }

    def url(self, bucket: str, prefix: str = "") -> str:
        """A URL that says all of that itself."""
        said = {key.removeprefix("AWS_").lower(): v for key, v in self.environment.items()}
        return f"s3://{bucket}/{prefix}?{urlencode(said)}"

    def make_bucket(self, name: str) -> None:
        httpx.put(f"{self.endpoint}/{name}", headers=_SIGNED, trust_env=False).raise_for_status()

    def unfinished(self, bucket: str) -> int:
        """How many objects were begun in parts, and neither finished nor given up."""
        answer = httpx.get(f"{self.endpoint}/{bucket}?uploads", headers=_SIGNED, trust_env=False)
        answer.raise_for_status()
        return answer.text.count("<UploadId>")


@contextmanager
def serve_s3(log: Path) -> Iterator[S3]:
    """An S3 server for as long as it is needed."""
    process = start("moto", (sys.executable, "-c", _SERVE), log)
    try:
        port = int(process.first_line(READY_S))
        yield S3(f"http://127.0.0.1:{port}")
    finally:
        process.stop(expect=None)
