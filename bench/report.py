"""The results as text: Markdown tables, the same on a terminal and in docs/performance.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import rows, stats
from bench.results import OURS, Results

BEGIN = "<!-- results: written by the benchmarks, do not edit -->"
END = "<!-- end of results -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Where results come from; ``titles`` are by kind, in the table's order."""

    command: str
    date: str
    titles: Mapping[str, str]
    versions: Sequence[str]
    notes: Sequence[str] = ()


def number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def ratio(value: float) -> str:
    """Two significant digits, but never an exponent: 12, 1.2, 0.12, 0.0012."""
    if value >= 10:
        return f"{value:,.0f}"
    text = f"{value:.2g}" if value else "0"
    return f"{value:.6f}".rstrip("0") if "e" in text else f"{float(text):g}"


def measured(spread: stats.Spread | None, digits: int) -> str:
    """``median (low-high)``, or a dash."""
    if spread is None:
        return "-"
    middle = number(spread.median, digits)
    if spread.count == 1:
        return middle
    return f"{middle} ({number(spread.low, digits)}-{number(spread.high, digits)})"


def compared(spread: stats.Spread | None) -> str:
    if spread is None:
        return "-"
    if spread.count == 1:
        return ratio(spread.median)
    return f"**{ratio(spread.median)}** ({ratio(spread.low)}-{ratio(spread.high)})"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    body = [head, ["---"] + ["--:"] * (len(head) - 1), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in body)


def figures_table(results: Results, titles: Mapping[str, str]) -> str:
    """A line a figure; empty when only verbs were measured."""
    peers = [kind for kind in titles if kind != OURS]
    head = ["", *titles.values(), *(f"fencepost / {titles[peer]}" for peer in peers)]
    lines = []
    for row in rows.ROWS:
        if row.key not in results.values:
            continue
        cells = [measured(results.spread(row.key, kind), row.digits) for kind in titles]
        cells += [compared(results.ratio(row.key, peer)) for peer in peers]
        lines.append([f"{row.title}, {row.unit}", *cells])
    return table(head, lines) if lines else ""


def verbs_table(results: Results) -> str:
    """What steering takes, a line a verb; empty when it was not measured."""
    lines = []
    for verb, title in rows.VERBS.items():
        measured_rows = [rows.row(f"{verb}_{statistic}") for statistic in rows.STATISTICS]
        spreads = [(results.spread(row.key, OURS), row.digits) for row in measured_rows]
        if any(spread is not None for spread, _ in spreads):
            lines.append([title, *(measured(spread, digits) for spread, digits in spreads)])
    return table(["control API, ms", *rows.STATISTICS.values()], lines) if lines else ""


def targets_table(results: Results, titles: Mapping[str, str]) -> str:
    lines = []
    for target in rows.TARGETS:
        if target.row not in results.values:
            continue
        row = rows.row(target.row)
        spread = results.judged(target)
        bound = "at least" if target.at_least else "at most"
        if target.peer is None:
            limit = f"{bound} {target.limit:,g} {row.unit}"
            found = measured(spread, row.digits)
        else:
            limit = f"{bound} {target.limit:g} x {titles.get(target.peer, target.peer)}"
            found = compared(spread)
        verdict = "not measured"
        if spread is not None:
            verdict = "met" if target.met(spread.median) else "**missed**"
        lines.append([row.title, limit, found, verdict])
    return table(["goal", "", "measured", ""], lines)


def machine() -> str:
    """Cores, memory and software; nothing that names the machine."""
    cores = len(os.sched_getaffinity(0))
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    memory = f"{pages / 2**30:.0f} GiB of memory"
    return f"{cores} cores, {memory}, {platform.system()} {platform.machine()}, {python}"


def whole(results: Results, about: About) -> str:
    """Everything between the markers of docs/performance.md."""
    parts = [
        f"Made by `{about.command}` on {about.date}; {machine()}.",
        f"Versions: {'; '.join(about.versions)}.",
    ]
    if results.values:
        goals = targets_table(results, about.titles)
        tables = [goals, figures_table(results, about.titles), verbs_table(results)]
        parts += filter(None, tables)
    notes = [*about.notes, *results.problems]
    if results.others:
        share = stats.Spread.of(results.others)
        notes.append(
            f"Other processes used {share.median:.0%} of the machine ({share.high:.0%} at most)."
        )
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts)


def write(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Puts ``text`` between two markers of a page.

    :raises ValueError: When the page does not have them once each, in order.
    """
    old = page.read_text()
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise ValueError(f"{page.name} needs the two markers of the results, once each, in order")
    before, _, rest = old.partition(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")
