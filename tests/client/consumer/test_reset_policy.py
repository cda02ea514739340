from __future__ import annotations

import pytest

from fencepost.client.consumer.reset_policy import (
    Situation,
    Strategy,
    Target,
    parse_reset_policy,
)

START, END = Target.LOG_START, Target.LOG_END


@pytest.mark.parametrize(
    ("policy", "targets"),
    [
        ("latest", (END, END, END)),
        ("earliest", (START, START, START)),
        ("by_duration:P1D", (Target.BY_DURATION,) * 3),
        ("closest", (START, START, Target.BY_COMMIT)),
    ],
)
def test_each_policy_has_a_target_for_each_situation(
    policy: str, targets: tuple[Target, ...]
) -> None:
    parsed = parse_reset_policy(policy, drafted=True)
    assert parsed.resets
    assert tuple(map(parsed.target, Situation)) == targets


def test_none_resets_nothing() -> None:
    assert not parse_reset_policy("none", drafted=False).resets


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P7D", 604_800_000),
        ("PT1H30M", 5_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT0.0015S", 2),
        ("PT0,25S", 250),
        ("pt5m", 300_000),
        ("PT0S", 0),
    ],
)
def test_durations_are_those_of_iso_8601(text: str, milliseconds: int) -> None:
    parsed = parse_reset_policy(f"by_duration:{text}", drafted=False)
    assert (parsed.strategy, parsed.duration_ms) == (Strategy.BY_DURATION, milliseconds)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "7D", "P1Y", "P-1D", "-P1D", "P1DT", "PT1.S", "P1W"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration as PnDTnHnMn"):
        parse_reset_policy(f"by_duration:{text}", drafted=False)


@pytest.mark.parametrize("text", ["", "Latest", "by_duration", "smallest"])
def test_any_other_policy_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"none of latest, earliest, none, by_duration:[^,]*$"):
        parse_reset_policy(text, drafted=False)
    with pytest.raises(ValueError, match=r", closest$"):
        parse_reset_policy(text, drafted=True)


def test_closest_needs_the_draft() -> None:
    with pytest.raises(ValueError, match='it needs dialect="kip-320-draft"'):
        parse_reset_policy("closest", drafted=False)
