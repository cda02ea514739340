"""``python s3_server.py BUCKET``: an S3 on port 9000 with an empty bucket, in memory.

For docker-compose.yml: it is moto's, and takes any credentials. With ``--check`` it asks the server
of this machine whether it answers.
"""

import logging
import sys
import threading
from typing import Final
from urllib.request import Request, urlopen

PORT: Final = 9000
_SIGNED: Final = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request,"
    " SignedHeaders=host, Signature=none"
}
"""What moto wants to see; it checks no signature."""


def serve(bucket: str) -> None:
    """Serve until the process ends."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("0.0.0.0", PORT, application, threaded=True)  # in a container
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    _ask(f"/{bucket}", "PUT")
    serving.join()


def _ask(path: str, method: str) -> None:
    request = Request(f"http://127.0.0.1:{PORT}{path}", method=method, headers=_SIGNED)
    urlopen(request, timeout=5).close()  # of this machine


if __name__ == "__main__":
    _, argument = sys.argv
    if argument == "--check":
        _ask("/", "GET")
    else:
        serve(argument)
