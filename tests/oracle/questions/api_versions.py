"""ApiVersions: every version, unknown ones, and what a client may call itself."""

from __future__ import annotations

from tests.harness.wire import Body, Connection, decode
from tests.oracle.asker import Asker
from tests.oracle.asking import error_text

SECTION = "ApiVersions"
SOFTWARE: Body = {"ClientSoftwareName": "x", "ClientSoftwareVersion": "1"}
NAMES = (("", "1"), ("a b", "1"), ("ok", ""), ("-x", "1"), ("ok", "a_b"), ("ok-1.2", "1.0-rc"))


def ask(asker: Asker) -> None:
    _every_version(asker)
    for version in (5, 6, 99, 32767, -1):
        asker.row(SECTION, f"v{version} (body encoded as v3)", _unknown_version(asker, version))
    with asker.fresh() as connection:
        connection.send("ApiVersions", 99, b"")
        asker.row(SECTION, "v99 with empty body", connection.receive().hex())
    _software_names(asker)
    _place_in_the_connection(asker)


def _every_version(asker: Asker) -> None:
    for version in range(5):
        answer = asker.connection.call("ApiVersions", version, SOFTWARE)
        extra = [key for key in answer if key not in ("ApiKeys", "ErrorCode")]
        text = f"err={error_text(answer['ErrorCode'])} keys={len(answer['ApiKeys'])} extra={extra}"
        asker.row(SECTION, f"v{version}", text)
    asker.row(SECTION, "full v4 key list", [list(each.values()) for each in answer["ApiKeys"]])


def _unknown_version(asker: Asker, version: int) -> str:
    with asker.fresh() as connection:
        connection.send("ApiVersions", version, SOFTWARE, encode_as=3)
        try:
            payload = connection.receive()
        except ConnectionError as closed:
            return repr(closed)
    body = decode("ApiVersionsResponse", 0, payload[4:])
    keys = [tuple(each.values()) for each in body["ApiKeys"]]
    text = f"v0 body: err={error_text(body['ErrorCode'])} keys={keys}"
    return f"{text} trailing={body.get('_TRAILING')} raw={payload.hex()}"


def _software_names(asker: Asker) -> None:
    for name, version in NAMES:
        with asker.fresh() as connection:
            body = {"ClientSoftwareName": name, "ClientSoftwareVersion": version}
            answer = connection.call("ApiVersions", 3, body)
        text = f"err={error_text(answer['ErrorCode'])} keys={len(answer['ApiKeys'])}"
        asker.row(SECTION, f"v3 software name={name!r} version={version!r}", text)


def _place_in_the_connection(asker: Asker) -> None:
    with asker.fresh() as connection:
        connection.call("ApiVersions", 3, SOFTWARE)
        again = error_text(connection.call("ApiVersions", 3, SOFTWARE)["ErrorCode"])
    asker.row(SECTION, "second ApiVersions on the same connection", f"err={again}")
    with asker.fresh() as connection:
        asker.row(
            SECTION,
            "Metadata as first request (no ApiVersions before)",
            f"ok brokers={_brokers(connection)}",
        )


def _brokers(connection: Connection) -> int:
    return len(connection.call("Metadata", 12, {"Topics": []})["Brokers"])
