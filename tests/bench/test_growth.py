"""Curves of the cost of a unit: which are worse than linear, and what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import group_members, growth, servers, wire
from bench.growth import CURVES, Curve
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_request, encode_response
from fencepost.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember


@pytest.mark.parametrize(
    ("costs", "steep"),
    [
        ({10: 5.0, 100: 1.0, 1000: 1.0}, False),
        ({10: 1.0, 100: 1.0, 1000: 1.4}, False),
        ({10: 5.0, 100: 1.0, 1000: 1.6}, True),
        ({10: 1.0, 100: 9.0, 1000: 1.0}, False),
        ({10: 1.0}, False),
    ],
)
def test_a_curve_that_ends_above_its_lowest_point_is_worse_than_linear(
    costs: dict[float, float], *, steep: bool
) -> None:
    assert growth.is_steep(costs) is steep


def test_a_curve_is_described_by_its_ends_and_its_growth() -> None:
    costs: dict[str, dict[float, float]] = {
        "fencepost": {10: 2345.6, 1000: 1.0},
        "kfake": {10: 0.0123, 1000: 2.0},
    }
    assert growth.described(CURVES[0], costs) == (
        "CreateTopics, us of CPU a partition: fencepost 2,346 at 10 and 1 at 1,000; "
        "kfake 0.0123 at 10 and 2 at 1,000, **worse than linear**."
    )


def test_names_are_unique_and_points_rise() -> None:
    assert len({curve.name for curve in CURVES}) == len(CURVES)
    for curve in CURVES:
        assert list(curve.points) == sorted(curve.points)
        assert max(curve.small) <= max(curve.points)


def curve_of(measure: growth.Measure, *, has_peer: bool = True) -> Curve:
    return Curve(
        name="c",
        title="t",
        x_title="x",
        y_title="y",
        points=(1, 2),
        small=(1,),
        measure=measure,
        has_peer=has_peer,
    )


def test_a_point_that_fails_is_left_out_and_said() -> None:
    said: list[str] = []

    def measure(kind: servers.Kind, x: int) -> float:
        if x == 2 and kind.key == "kfake":
            raise wire.BadAnswer("no")
        return float(x)

    kinds: list[servers.Kind] = [servers.Fencepost(), servers.Kfake()]
    found = growth.run([curve_of(measure)], kinds, small=False, rounds=1, say=said.append)
    assert found == {"c": {"fencepost": {1: 1.0, 2: 2.0}, "kfake": {1: 1.0}}}
    assert "c 2 kfake: no" in said
    alone = curve_of(measure, has_peer=False)
    assert growth.run([alone], kinds, small=True, rounds=1, say=said.append) == {
        "c": {"fencepost": {1: 1.0}}
    }


def test_the_lowest_of_some_measurements_counts() -> None:
    costs = iter([3.0, 1.0, 2.0])
    found = growth.run(
        [curve_of(lambda _kind, _x: next(costs))],
        [servers.Fencepost()],
        small=True,
        rounds=3,
        say=lambda _: None,
    )
    assert found["c"]["fencepost"] == {1: 1.0}


def test_the_page_shows_each_picture_that_was_drawn(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{growth.BEGIN}\nold\n{growth.END}\nafter\n")
    name = CURVES[0].name
    growth.write(path, {name: {"fencepost": {10: 2.0, 100: 1.0}}}, "made")
    text = path.read_text()
    assert f"![{CURVES[0].title}](growth/{name}.svg)" in text
    assert "old" not in text
    assert [each.name for each in (tmp_path / "growth").iterdir()] == [f"{name}.svg"]


def test_a_leader_learns_of_all_members_and_assigns_to_each() -> None:
    members = tuple(JoinGroupResponseMember(member_id=each, metadata=b"m") for each in "ab")
    answer = JoinGroupResponse(generation_id=7, leader="a", member_id="a", members=members)
    frame = b"".join(encode_response(BY_NAME["join_group"], 3, 1, answer))[4:]
    joined = group_members.decode_join(frame)
    assert joined == group_members.Joined(generation=7, leader="a", member="a", members=("a", "b"))
    request = group_members.sync_request("g", joined)[4:]
    synced = decode_request(BY_NAME["sync_group"], 2, request, 15)
    assert [each.member_id for each in synced.assignments] == ["a", "b"]
    refused = b"".join(
        encode_response(BY_NAME["join_group"], 3, 1, JoinGroupResponse(error_code=25))
    )
    with pytest.raises(wire.BadAnswer, match="error 25"):
        group_members.decode_join(refused[4:])
