"""Names of APIs and errors as people write them, and the nearest name to an unknown one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import (
    UnknownName,
    config_name_hint,
    find_api,
    find_error,
    nearest,
    parse_api_ceiling,
)


def _spellings(snake_case: str, title: str) -> set[str]:
    return {
        snake_case,
        snake_case.upper(),
        snake_case.replace("_", "-"),
        snake_case.replace("_", " "),
        title,
        title.lower(),
    }


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_an_api_is_found_by_its_key_and_by_its_name_in_any_spelling(api: Api) -> None:
    assert {find_api(text) for text in {str(api.key), *_spellings(api.name, api.title)}} == {api}
    assert parse_api_ceiling(f"{api.title}={api.max_version}") == (api.name, api.max_version)


@pytest.mark.parametrize("error", ErrorCode, ids=lambda error: error.name)
def test_an_error_is_found_by_its_code_and_by_its_name_in_any_spelling(error: ErrorCode) -> None:
    title = error.name.title().replace("_", "")
    assert {find_error(text) for text in {str(int(error)), *_spellings(error.name, title)}} == {
        error
    }


def test_a_code_that_kafka_does_not_have_is_its_own() -> None:
    assert (find_error("-32768"), find_error("32767")) == (-32768, 32767)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Fetsh", "api: no API 'Fetsh' is served; did you mean Fetch?"),
        ("list.offset", "api: no API 'list.offset' is served; did you mean ListOffsets?"),
        ("999", "api: no API '999' is served"),
        ("", "api: no API '' is served"),
    ],
)
def test_an_unknown_api_is_refused_with_the_nearest(text: str, message: str) -> None:
    with pytest.raises(UnknownName) as refused:
        find_api(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "fenced-leader-epoc",
            "error: Kafka has no 'fenced-leader-epoc'; did you mean FENCED_LEADER_EPOCH?",
        ),
        ("xyz", "error: Kafka has no 'xyz'"),
        ("32768", "error: 32768: codes go from -32768 to 32767"),
        ("-32769", "error: -32769: codes go from -32768 to 32767"),
    ],
)
def test_an_unknown_error_is_refused_with_the_nearest(text: str, message: str) -> None:
    with pytest.raises(UnknownName) as refused:
        find_error(text)
    assert str(refused.value) == message


def test_a_name_must_be_similar_to_be_the_nearest() -> None:
    known = ["retention.ms", "retention.bytes"]
    assert nearest("Retension-MS", known) == "retention.ms"
    assert nearest("compression.type", known) is None
    assert nearest("retain.by", known) == "retention.bytes"
    assert config_name_hint("retain.by", known, {}, "topic") == "", "configs ask for more"


def test_a_start_does_not_pay_for_unknown_names() -> None:
    code = "import sys, fencepost.protocol.lookup; print({'difflib', 'kio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
