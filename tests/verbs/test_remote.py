"""Verbs over HTTP: the request, the answer, and the errors of a bad connection."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import pytest

from fencepost.verbs.answers import Done
from fencepost.verbs.answers.cluster import EventState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Refused, Remote, Unreachable, VerbError, default_url
from tests.harness.fake_control_api import (
    HOST,
    FakeControlApi,
    Json,
    Reply,
    Then,
    ok,
    refusal,
    stream,
)

TOPIC: Final[Json] = {
    "name": "orders",
    "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
    "partitions": 3,
    "replication_factor": 3,
    "internal": False,
    "configs": {},
}
EVENT: Final = (
    '{"number":%d,"kind":"reset","time_ms":0,"topic":null,"partition":null,"broker":null,'
    '"details":{}}'
)
SILENT: Final = Reply(content=None, then=Then.WAIT)
CUT: Final = Reply(content=None, then=Then.CLOSE)


@pytest.fixture
def verbs(remote: Remote) -> Verbs:
    return Verbs(remote)


# -- what is sent -------------------------------------------------------------------------------


def test_a_get_has_its_parameters_in_path_and_query(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok([]))
    assert verbs.trace(api="Fetch", client_id="a b&c", since=7) == []
    (asked,) = stub.asked
    assert (asked.method, asked.content) == ("GET", b"")
    assert asked.target == "/v1/trace?api=Fetch&client_id=a+b%26c&since=7"


def test_a_get_with_nothing_chosen_has_no_query(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok([TOPIC]))
    (topic,) = verbs.topics()
    assert topic == TopicState.model_validate(TOPIC)
    assert stub.asked[0].target == "/v1/topics"


def test_a_post_has_a_body_of_what_is_not_the_default(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok(TOPIC))
    verbs.create_topic("orders", assignments=[[1, 2], [2, 1]], configs={"retention.ms": "7"})
    (asked,) = stub.asked
    assert (asked.method, asked.target) == ("POST", "/v1/topics")
    assert asked.body == {
        "name": "orders",
        "assignments": [[1, 2], [2, 1]],
        "configs": {"retention.ms": "7"},
    }


def test_null_is_sent_where_it_is_not_the_default(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "never mind"))
    with pytest.raises(Refused):
        verbs.add_fault("Fetch", count=None, action={"delay": 200})
    assert stub.asked[0].body == {"api": "Fetch", "count": None, "action": {"delay": 200}}


def test_a_field_is_sent_by_the_name_that_it_has_in_json(
    stub: FakeControlApi, verbs: Verbs
) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "never mind"))
    with pytest.raises(Refused):
        verbs.isolate_broker(3, origin=[1, 2])
    (asked,) = stub.asked
    assert (asked.target, asked.body) == ("/v1/brokers/3/isolate", {"from": [1, 2]})


def test_a_name_in_a_path_is_one_part_of_it(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok({}))
    verbs.delete_topic("a/b c?d")
    assert stub.asked[0].target == "/v1/topics/a%2Fb%20c%3Fd"


def test_a_control_api_may_stand_below_a_path(stub: FakeControlApi) -> None:
    stub.will(ok({}))
    with closing(Remote(f"{stub.url}/behind/a/proxy/")) as remote:
        Verbs(remote).reset()
    assert stub.asked[0].target == "/behind/a/proxy/v1/reset"


def test_what_is_wrong_is_refused_without_asking(stub: FakeControlApi, verbs: Verbs) -> None:
    with pytest.raises(Refused) as wrong:
        verbs.elect("t", 0, leader="2")  # type: ignore[arg-type]  # that is it
    assert wrong.value.code == "INVALID_REQUEST"
    assert str(wrong.value) == "leader: input should be a valid integer (INVALID_REQUEST)"
    assert stub.asked == []


# -- answers ------------------------------------------------------------------------------------


def test_a_refusal_has_its_code_and_message(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(refusal(404, "UNKNOWN_TOPIC_OR_PARTITION", "there is no partition t-7"))
    with pytest.raises(Refused) as refused:
        verbs.roll("t", 7)
    assert refused.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert refused.value.message == "there is no partition t-7"
    assert str(refused.value) == "there is no partition t-7 (UNKNOWN_TOPIC_OR_PARTITION)"


def test_fields_that_are_not_known_yet_do_no_harm(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok([{**TOPIC, "colour": "green"}]))
    assert verbs.topics() == [TopicState.model_validate(TOPIC)]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=502, content=b"<html>Bad gateway</html>"), "answered 502 Whatever"),
        (Reply(status=500, content=b'{"detail": "oops"}'), "answered 500 Whatever"),
        (Reply(status=404, content=b"[]"), "answered 404 Whatever"),
        (Reply(content=b"<html>Another server</html>"), "answered something else than"),
        (ok([{"name": "orders"}]), "answered something else than"),
    ],
    ids=["gateway", "crash", "list", "page", "other"],
)
def test_an_answer_of_something_else_is_no_control_api(
    stub: FakeControlApi, verbs: Verbs, reply: Reply, said: str
) -> None:
    stub.will(reply)
    with pytest.raises(Unreachable, match=said) as told:
        verbs.topics()
    assert len(str(told.value).splitlines()) == 1


# -- connections --------------------------------------------------------------------------------


def test_one_connection_is_kept_while_one_asks_after_the_other(
    stub: FakeControlApi, verbs: Verbs
) -> None:
    stub.will(ok([]))
    for _ in range(3):
        verbs.topics()
    assert [asked.connection for asked in stub.asked] == [1, 1, 1]


def test_a_refusal_leaves_the_connection_as_it_is(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "never mind"), ok({}))
    with pytest.raises(Refused):
        verbs.reset()
    verbs.reset()
    assert [asked.connection for asked in stub.asked] == [1, 1]


def test_a_kept_connection_that_was_closed_meanwhile_is_opened_again(
    stub: FakeControlApi, verbs: Verbs
) -> None:
    stub.will(Reply(then=Then.CLOSE))
    for _ in range(3):
        verbs.reset()
    assert [asked.connection for asked in stub.asked] == [1, 2, 3]


def test_a_new_connection_that_is_closed_without_an_answer_is_not_tried_again(
    stub: FakeControlApi, verbs: Verbs
) -> None:
    stub.will(CUT)
    with pytest.raises(Unreachable, match="no control API answers at"):
        verbs.reset()
    assert len(stub.asked) == 1


def test_who_ask_at_the_same_time_have_connections_of_their_own(
    stub: FakeControlApi, remote: Remote, verbs: Verbs
) -> None:
    stub.will(ok([]), SILENT, ok([]))
    verbs.topics()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(verbs.wait_for_fault, 1, timeout_ms=0)
        stub.wait_for(2)
        verbs.topics()
        assert [asked.connection for asked in stub.asked] == [1, 1, 2]
        stub.ended.set()
        with pytest.raises(Unreachable):
            waiting.result(timeout=10)


def test_threads_leave_no_connection_behind_that_a_close_would_not_find(
    stub: FakeControlApi, remote: Remote, verbs: Verbs
) -> None:
    stub.will(ok([]))
    with ThreadPoolExecutor(3) as threads:
        together = threading.Barrier(3)
        for asked in [threads.submit(_ask_after, together, verbs) for _ in range(3)]:
            asked.result(timeout=10)
    remote.close()
    stub.wait_for_all_closed()


def _ask_after(together: threading.Barrier, verbs: Verbs) -> None:
    together.wait(10)
    verbs.topics()


def test_after_a_close_the_next_request_opens_another(
    stub: FakeControlApi, remote: Remote, verbs: Verbs
) -> None:
    remote.close()
    for _ in range(2):
        verbs.reset()
        remote.close()
    assert [asked.connection for asked in stub.asked] == [1, 2]


# -- a bad line ---------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["127.0.0.1:9644", "ftp://there", "", "http://", "http://h:port"])
def test_what_is_no_url_is_said_so(url: str) -> None:
    with pytest.raises(Unreachable, match="is not the URL of a control API"):
        Remote(url)


def test_nobody_listens() -> None:
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(
        Unreachable, match=f"no control API answers at http://{HOST}:{port}: "
    ) as no:
        Verbs(Remote(f"http://{HOST}:{port}")).topics()
    assert isinstance(no.value, VerbError)


@pytest.mark.parametrize(
    "reply", [SILENT, Reply(missing=1, then=Then.WAIT)], ids=["no answer", "half an answer"]
)
def test_silence_is_not_waited_out(stub: FakeControlApi, reply: Reply) -> None:
    stub.will(reply, ok({}))
    with closing(Remote(stub.url, timeout_s=0.5)) as remote:
        with pytest.raises(Unreachable, match="timed out"):
            Verbs(remote).reset()
        Verbs(remote).reset()
    assert [asked.connection for asked in stub.asked] == [1, 2]


def test_an_answer_that_breaks_off_is_none(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(Reply(missing=1, then=Then.CLOSE), ok({}))
    with pytest.raises(Unreachable, match="no control API answers at"):
        verbs.reset()
    verbs.reset()
    assert [asked.connection for asked in stub.asked] == [1, 2]


def test_who_is_interrupted_can_ask_again(
    stub: FakeControlApi, verbs: Verbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    stub.will(ok([]))
    with monkeypatch.context() as patch:
        patch.setattr("http.client.HTTPResponse.read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verbs.topics()
    assert verbs.topics() == []


def test_a_wait_may_last_as_long_as_it_was_asked_to(stub: FakeControlApi) -> None:
    stub.will(SILENT)
    with (
        closing(Remote(stub.url, timeout_s=0.1)) as remote,
        ThreadPoolExecutor(1) as threads,
    ):
        waiting = threads.submit(Verbs(remote).wait_for_fault, 1, timeout_ms=1500)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        with pytest.raises(Unreachable, match="timed out"):
            waiting.result(timeout=10)


# -- streams ------------------------------------------------------------------------------------


def events(*numbers: int, then: Then = Then.CLOSE) -> Reply:
    blocks = [(f"id: {n}", "event: reset", f"data: {EVENT % n}", "") for n in numbers]
    return stream(": still here", "", *(line for block in blocks for line in block), then=then)


def test_a_stream_tells_each_event_until_the_cluster_ends(
    stub: FakeControlApi, verbs: Verbs
) -> None:
    stub.will(events(4, 5))
    told = list(verbs.events(since=3))
    assert told == [EventState.model_validate_json(EVENT % n) for n in (4, 5)]
    assert stub.asked[0].target == "/v1/events?since=3"


def test_a_stream_is_open_before_anything_is_read_of_it(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(events(1, then=Then.WAIT))
    told = verbs.events()
    assert len(stub.asked) == 1
    del told
    stub.wait_for_all_closed()


def test_a_stream_has_a_connection_of_its_own(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(ok({}), events(1, then=Then.WAIT), ok({}))
    verbs.reset()
    told = verbs.events()
    assert next(told).number == 1
    verbs.reset()
    assert [asked.connection for asked in stub.asked] == [1, 2, 1]
    told.close()  # type: ignore[attr-defined]  # it is a generator


def test_a_stream_that_is_refused(stub: FakeControlApi, verbs: Verbs) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "since: too small"))
    with pytest.raises(Refused, match="since: too small"):
        verbs.events(since=1)


def test_a_silent_stream_is_given_up(stub: FakeControlApi) -> None:
    stub.will(events(1, then=Then.WAIT))
    told = Verbs(Remote(stub.url, timeout_s=0.5)).events()
    assert next(told).number == 1
    with pytest.raises(Unreachable, match="timed out"):
        next(told)


def test_a_verb_without_parameters_has_no_body(stub: FakeControlApi, remote: Remote) -> None:
    stub.will(ok({}))
    assert remote.call(VERBS["start_broker"], Done, {"broker": 1}, {}) == Done()
    assert stub.asked[0].content == b""


# -- where --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL": "http://there:1"}, "http://there:1"),
        ({"FENCEPOST_CONTROL_PORT": "1234"}, "http://127.0.0.1:1234"),
        ({"FENCEPOST_CONTROL_PORT": ""}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "0.0.0.0"}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "::"}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "::1"}, "http://[::1]:9644"),
        (
            {"FENCEPOST_CONTROL_HOST": "10.0.0.7", "FENCEPOST_CONTROL_PORT": "7"},
            "http://10.0.0.7:7",
        ),
        (
            {"FENCEPOST_CONTROL_HOST": "10.0.0.7", "FENCEPOST_CONTROL": "http://there"},
            "http://there",
        ),
    ],
)
def test_where_a_cluster_of_the_same_environment_is_asked(
    environment: dict[str, str], url: str
) -> None:
    assert default_url(environment) == url
    Remote(url)


def test_no_proxy_stands_between(
    stub: FakeControlApi, verbs: Verbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    verbs.reset()
    assert len(stub.asked) == 1
