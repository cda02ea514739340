"""The page of an audit: one file, small whatever it tells of, and it says what it leaves out."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from fencepost.pipeline.audit.job import ALL_RULES, AuditResult
from fencepost.pipeline.audit.lineage.epoch_runs import EpochRun
from fencepost.pipeline.audit.partition_summary import PartitionSummary, RuleFailure
from fencepost.pipeline.audit.report import MAX_DRAWN, MAX_FINDINGS, MAX_LISTED, write_report
from fencepost.pipeline.audit.report.lineage_lanes import MAX_RUNS, stack
from fencepost.pipeline.audit.totals import (
    select_findings,
)
from tests.harness.recorded_cluster import recorded
from tests.pipeline.audit.summaries import START_MS, findings, result, summary, violation

_WITHOUT_END: Final = frozenset({"meta", "br", "link", "img", "hr"})


class Page(HTMLParser):
    """What is in a page; a tag that is not closed, or closed twice, is a mistake."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        given = dict(attrs)
        self.ids += filter(None, [given.get("id")])
        if tag not in _WITHOUT_END:
            self._open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has code in {name}"
            if name in ("src", "href", "xlink:href", "action"):
                assert (value or "").startswith("#"), f"{tag} needs {value}"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _WITHOUT_END:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "

    @property
    def drawings(self) -> list[ET.Element]:
        found = re.findall(r"<svg.*?</svg>", self.text, re.DOTALL)
        return [ET.fromstring(each) for each in found]


def page(folder: Path, told: AuditResult) -> Page:
    path = folder / "report.html"
    write_report(path, told)
    return Page(path.read_text(encoding="utf-8"))


def parts(drawing: ET.Element) -> set[str]:
    """What is in a drawing, by the ids of its groups without what makes them its own."""
    ids = (each.get("id") for each in drawing.iter() if each.tag.endswith("}g"))
    return {each.partition("-")[2] for each in ids if each is not None}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """An audit of a minute in which much happened."""
    return result(recorded(tmp_path_factory.mktemp("recorded"), seed=3, minutes=1))


def test_a_page_needs_nothing_else(tmp_path: Path, history: AuditResult) -> None:
    made = page(tmp_path, history)
    assert not {"script", "iframe", "object", "link", "img"} & set(made.tags)
    assert re.findall(r"@import|url\((?!#)", made.text) == []
    twice = {name for name, count in Counter(made.ids).items() if count > 1}
    assert twice == set()


def test_it_tells_of_every_rule_and_partition(tmp_path: Path, history: AuditResult) -> None:
    made = page(tmp_path, history)
    for name in ALL_RULES:
        assert name in made.words
    for each in history.summaries:
        assert f"{each.topic}-{each.partition}" in made.words
    assert len(made.drawings) == len(history.summaries)


def test_everything_over_time_is_drawn(tmp_path: Path, history: AuditResult) -> None:
    busiest = max(history.summaries, key=lambda each: each.trace_rows)
    made = page(tmp_path, history)
    names = re.findall(r'<details id="([^"]+)"', made.text)
    drawn = parts(made.drawings[names.index(f"{busiest.topic}-{busiest.partition}")])
    assert {"log-end", "high-watermark", "latest", "election-0"} <= drawn
    assert any(name.startswith("lag-") for name in drawn)
    for held in busiest.replicas:
        assert f"segments-{held.broker or 'tier'}" in drawn


def test_findings_are_told_and_marked(tmp_path: Path) -> None:
    at = violation(message="<script>alert('& so')</script>", offset=12)
    made = page(tmp_path, findings([summary(0, found=1)], [at]))
    assert "script" not in made.tags
    assert "<script>alert('& so')</script>" in made.words
    assert "1 violation." in made.words
    assert "cluster metadata: none." in made.words
    assert any(name.startswith("findings-nowhere") for name in parts(made.drawings[0]))
    clean = page(tmp_path, findings([summary(0)]))
    assert "No violation." in clean.words
    assert not any(name.startswith("findings") for name in parts(clean.drawings[0]))


def test_the_lineage_is_a_table_and_lanes(tmp_path: Path) -> None:
    made = page(tmp_path, findings([summary(0, segments=4)]))
    words = " ".join(made.words.split())
    assert {"lineage-1", "lineage-2", "parts-0"} <= parts(made.drawings[0])
    row = words[words.index(" Lineage partition") : words.index(" Partitions ")]
    assert "orders-0 broker 1 epoch 0 from 0 to 39" in row
    assert "broker 2 leads epoch 0 from 0 to 19, epoch 1 from 20 to 39" in row
    parting = "broker 1 (epoch 0) and broker 2 (epoch 1) part at offset 20"
    assert row.count(parting) == 1
    assert row.count(" 20 20 ") == 1  # records that broker 1 has alone, and would truncate
    assert "broker 2 answers OffsetForLeaderEpoch of epoch 0: epoch 0 ends at 20" in words


def test_replicas_that_agree_have_lanes_without_a_mark(
    tmp_path: Path, history: AuditResult
) -> None:
    made = page(tmp_path, history)
    names = re.findall(r'<details id="([^"]+)"', made.text)
    for each in history.summaries:
        drawn = parts(made.drawings[names.index(f"{each.topic}-{each.partition}")])
        (lineage,) = each.lineages
        for side in lineage.sides:
            name = "tier" if side.broker is None else str(side.broker)
            assert f"lineage-{name}" in drawn
            assert (f"watermark-{name}" in drawn) == (side.high_watermark is not None)
        assert not any(name.startswith("parts-") for name in drawn)
    assert " part at offset " not in made.words


def test_ranges_of_the_tier_that_overlap_are_drawn_below_each_other() -> None:
    def run(epoch: int, start: int, end: int) -> EpochRun:
        return EpochRun(epoch=epoch, start=start, end=end, batches=1, records=end - start)

    assert stack([run(0, 0, 20), run(1, 10, 30), run(2, 20, 40), run(3, 15, 16)]) == [0, 1, 0, 2]
    assert stack([run(0, 0, 20), run(1, 20, 30)]) == [0, 0]
    assert stack([]) == []


def test_what_failed_is_no_clean_bill(tmp_path: Path) -> None:
    failure = RuleFailure(rule="torn-tail", topic="orders", partition=0, reason="line\nOops: why")
    made = page(tmp_path, findings([summary(0, failures=[failure])]))
    assert "The audit is not complete" in made.words
    assert "No violation" not in made.words
    assert "Oops: why" in made.words


def test_hundreds_of_partitions_make_a_small_page(tmp_path: Path) -> None:
    many = [summary(number, segments=200, points=400) for number in range(700)]
    many[690] = summary(690, found=2)
    made = page(tmp_path, findings(many, [violation(690)] * 2))
    assert len(made.text) < 2_500_000
    assert len(made.drawings) == MAX_DRAWN
    assert re.findall(r'<details id="([^"]+)"', made.text)[0] == "orders-690"
    assert f"{MAX_DRAWN} of 700 partitions" in made.words
    assert "orders-699" in made.words


def test_what_is_not_drawn_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.pipeline.audit.report.MAX_DRAWN", 1)
    many = [_long(summary(0)), *(summary(number) for number in range(1, MAX_LISTED + 2))]
    found = [violation(number % 7, str(number)) for number in range(MAX_FINDINGS + 5)]
    made = page(tmp_path, findings(many, found))
    for said in (
        f"{MAX_LISTED:,} of {MAX_LISTED + 2:,}",
        "thinned out to what limits each stretch of time: log end 50 of 9,000",
        "900 segments of broker 1 as 3",
        "200 of 300 ranges of epochs of broker 1",
        "0 of 777 elections",
    ):
        assert said in " ".join(made.words.split())
    (lane,) = (
        each
        for each in made.drawings[0].iter()
        if (each.get("id") or "").endswith("-lineage-1") and each.tag.endswith("}g")
    )
    assert sum(each.tag.endswith("}path") for each in lane.iter()) == MAX_RUNS


def _long(short: PartitionSummary) -> PartitionSummary:
    """The same, as if there had been more."""
    assert short.history is not None
    return replace(
        short,
        # So that it is what is drawn.
        rule_counts=tuple(replace(each, found=9) for each in short.rule_counts),
        replicas=tuple(replace(each, segments=900) for each in short.replicas),
        lineages=tuple(
            replace(each, sides=tuple(replace(one, runs=one.runs[:1] * 300) for one in each.sides))
            for each in short.lineages
        ),
        history=replace(
            short.history, log_end=replace(short.history.log_end, total=9000), elections_total=777
        ),
    )


def test_no_rule_or_partition_is_crowded_out() -> None:
    def row(partition: int, rule: str, explanation: str | None = None) -> dict[str, object]:
        found = {"rule": rule, "topic": "a", "partition": partition}
        return {**found, "explanation": explanation, "suppression": None}

    rows = [row(0, "x") for _ in range(100)] + [row(1, "x"), row(0, "y"), row(2, "x", "because")]
    some = select_findings(rows, 5)
    assert [(each["partition"], each["rule"]) for each in some] == [
        *[(0, "x")] * 3,
        (1, "x"),
        (0, "y"),
    ]
    assert select_findings(rows, 1000) == rows


def test_the_same_findings_give_the_same_page(tmp_path: Path, history: AuditResult) -> None:
    made = datetime.fromtimestamp(START_MS / 1000, UTC)
    write_report(tmp_path / "a.html", history, made=made)
    write_report(tmp_path / "b.html", history, made=made)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "2023-11-14 22:13 UTC" in (tmp_path / "a.html").read_text()
