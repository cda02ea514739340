"""``fencepost audit``: checks of a cluster's logs, tier and trace against Kafka's rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fencepost.cli.output import BAD, GOOD, ODD, QUIET, Block, Cell, Table, Text, line, show
from fencepost.cli.spark import CANNOT_RUN, Master, os_error_text, reporting_errors
from fencepost.cli.typer_options import option
from fencepost.cli.usage_errors import InvalidUsage
from fencepost.protocol.lookup import suggestion

if TYPE_CHECKING:
    from fencepost.pipeline.audit.incidents import Incident
    from fencepost.pipeline.audit.job import AuditOptions, AuditResult
    from fencepost.pipeline.audit.suppressions import Suppression
    from fencepost.pipeline.audit.totals import (
        RuleTotals,
    )

FOUND: Final = 1
"""The exit code where a rule is violated."""
MAX_SHOWN: Final = 20
"""Incidents that are printed."""
MAX_PARTED: Final = 20
"""Partitions whose lineage is printed because their replicas part."""
FILE: Final = "violations.parquet"
INCIDENTS_FILE: Final = "incidents.parquet"
LINEAGE_FILE: Final = "lineage.parquet"
"""What is written to the directory of ``--out``."""
_INDENT: Final = " " * len("violation  ")


class AuditLevel(StrEnum):
    """How closely segments are looked at: as `Level`, whose module would import Arrow for help."""

    BATCHES = "batches"
    RECORDS = "records"


def register(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command()(audit)


def audit(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A directory of serve --data-dir, a log directory of Kafka, or a folder of such.",
        ),
    ],
    trace: Annotated[
        Path | None,
        option(
            "trace",
            "DIR",
            "A directory of serve --trace: requests and answers of clients.",
            unset="none, and rules that need it are not followed",
        ),
    ] = None,
    remote: Annotated[
        str | None,
        option("remote", "URL", "The remote tier, as serve --remote.", unset="none"),
    ] = None,
    topic: Annotated[
        list[str] | None,
        option("topic", "NAME", "Look at this topic only. May be repeated.", unset="all"),
    ] = None,
    rule: Annotated[
        list[str] | None,
        option("rule", "NAME", "Follow this rule only. May be repeated.", unset="all"),
    ] = None,
    level: Annotated[
        AuditLevel,
        option(
            "level", None, "Look at every record, or only at the headers and checksums of batches."
        ),
    ] = AuditLevel.RECORDS,
    report: Annotated[
        Path | None,
        option(
            "report", "FILE.html", "Write a page with plots there.", dir_okay=False, unset="none"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "out",
            "DIR",
            f"Write {FILE} there, a row a finding, {INCIDENTS_FILE}, a row a cause, and "
            f"{LINEAGE_FILE}.",
            file_okay=False,
            unset="none",
        ),
    ] = None,
    state: Annotated[
        str | None,
        option(
            "state",
            "URL",
            "Keep there what closed segments are like, and read only what is new the next time; "
            "and add the findings and the lineage of this run to those before.",
            unset="none, and all is read",
        ),
    ] = None,
    full: Annotated[
        bool,
        option("full", None, "Read all segments, whatever --state has of them."),
    ] = False,
    reread: Annotated[
        float,
        option(
            "reread",
            "SHARE",
            "Read this share (0 to 1) of the segments that did not change, others in each run.",
            at_least=0,
            at_most=1,
        ),
    ] = 0.0,
    suppressions: Annotated[
        Path | None,
        option(
            "suppressions",
            "FILE",
            "Findings that are accepted, a line each: RULE [KEY=VALUE]... -- REASON.",
            dir_okay=False,
            unset="none",
        ),
    ] = None,
    lineage: Annotated[
        bool,
        option(
            "lineage",
            None,
            "Print the leader epochs of every partition, not only of those whose replicas part.",
        ),
    ] = False,
    master: Master = None,
) -> None:
    """Check a cluster's logs, tier and trace for violations of Kafka's rules.

    Exits with 0 when nothing was found, with 1 when something was, with 2 when the audit could not
    be run. What is explained, such as a loss behind an unclean election, or suppressed by a file,
    is told and is no reason for 1.
    """
    with reporting_errors():
        from fencepost.pipeline.requirements import require_packages

        require_packages()
        from fencepost.pipeline.audit.job import AuditOptions
        from fencepost.pipeline.datasource.schemas import Level

        _check_state_options(state, full=full, reread=reread)
        options = AuditOptions(
            directory=str(directory.absolute()),
            trace=None if trace is None else str(trace.absolute()),
            remote=remote,
            topics=tuple(topic or ()),
            level=Level(level.value),
            rules=_known(rule or ()),
            with_histories=report is not None,
            state=state,
            full=full,
            reread=reread,
        )
        if suppressions is not None:
            options = replace(options, suppressions=_read_suppressions(suppressions, options))
        findings = _run(options, master, report, out)
    show(_summary(findings, report, out, with_lineage=lineage))
    raise typer.Exit(exit_code(findings))


def exit_code(findings: AuditResult) -> int:
    """Findings count, even where some rule could not be checked to its end."""
    if findings.violation_count:
        return FOUND
    return CANNOT_RUN if findings.failures else 0


def _check_state_options(state: str | None, *, full: bool, reread: float) -> None:
    """:raises InvalidUsage: When one of them is of no use."""
    if state is None and (full or reread):
        raise InvalidUsage(f"{'--full' if full else '--reread'} is of no use without --state")
    if full and reread:
        raise InvalidUsage("--full reads all: --reread is of no use with it")


def _known(names: Sequence[str]) -> tuple[str, ...]:
    from fencepost.pipeline.audit.job import ALL_RULES

    for name in names:
        if name not in ALL_RULES:
            raise InvalidUsage(f"there is no rule {name}{suggestion(name, tuple(ALL_RULES))}")
    return tuple(names)


def _read_suppressions(path: Path, options: AuditOptions) -> tuple[Suppression, ...]:
    """:raises CannotRunError: When it can't be read, or a line of it can't be followed."""
    from fencepost.pipeline.audit.job import ALL_RULES
    from fencepost.pipeline.audit.suppressions import InvalidSuppressions, parse_suppressions
    from fencepost.pipeline.requirements import CannotRunError

    try:
        text = path.read_text(encoding="utf-8")
        return parse_suppressions(text, str(path), tuple(ALL_RULES), options.now_ms)
    except UnicodeDecodeError:
        raise CannotRunError(f"{path} is no text in UTF-8") from None
    except InvalidSuppressions as error:
        raise CannotRunError(str(error)) from None


def _run(
    options: AuditOptions, master: str | None, report: Path | None, out: Path | None
) -> AuditResult:
    """Run the job, and write what is to be written.

    :raises CannotRunError: When one of it is not possible; what can't be written is said before the
        job.
    """
    from fencepost.pipeline.audit.job import audit as run
    from fencepost.pipeline.session import session

    _check_output_paths(report, out)
    with session("fencepost audit", master=master) as spark:
        findings = run(spark, options)
    if out is not None:
        with _writing(out / FILE):
            findings.write(out / FILE, out / INCIDENTS_FILE)
        with _writing(out / LINEAGE_FILE):
            findings.write_lineage(out / LINEAGE_FILE)
    if report is not None:
        from fencepost.pipeline.audit.report import write_report

        with _writing(report):
            write_report(report, findings)
    return findings


def _check_output_paths(report: Path | None, out: Path | None) -> None:
    """Refuse before a long job what could not be written after it.

    :raises CannotRunError: When one can't be.
    """
    from fencepost.pipeline.requirements import CannotRunError

    if out is not None:
        with _writing(out):
            out.mkdir(parents=True, exist_ok=True)
    for path in _files(report, out):
        target = path if path.exists() else path.absolute().parent
        if path.is_dir() or not os.access(target, os.W_OK):
            raise CannotRunError(f"can't write to {target}")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """:raises CannotRunError: When it can't be written."""
    from fencepost.pipeline.requirements import CannotRunError

    try:
        yield
    except OSError as error:
        raise CannotRunError(
            f"can't write to {error.filename or path}: {os_error_text(error)}"
        ) from error


def _files(report: Path | None, out: Path | None) -> list[Path]:
    """What is written."""
    names = () if out is None else (FILE, INCIDENTS_FILE, LINEAGE_FILE)
    return [*([] if report is None else [report]), *(out / name for name in names if out)]


def _summary(
    findings: AuditResult, report: Path | None, out: Path | None, *, with_lineage: bool
) -> Iterator[Block]:
    from fencepost.pipeline.audit.totals import (
        describe_extent,
        describe_totals,
        totals_by_rule,
    )

    yield line(describe_totals(findings))
    for text in findings.cluster_metadata.lines:
        yield line(text)
    if findings.extent is not None:
        yield line(describe_extent(findings.extent))
    yield line()
    rows = tuple(_rule_row(each) for each in totals_by_rule(findings))
    yield Table(("rule", "", "violations", "explained", "partitions"), rows)
    yield line()
    yield from lineage_blocks(findings, everywhere=with_lineage)
    incidents = findings.incidents
    for incident in incidents[:MAX_SHOWN]:
        yield from _incident(incident)
    if len(incidents) > MAX_SHOWN:
        more = len(incidents) - MAX_SHOWN
        yield line(Text(f"{more:,} more; --out and --report tell them", QUIET))
    for failure in findings.failures[:MAX_SHOWN]:
        yield line(Text("failed", ODD), f"  {failure.rule}  {failure.where}: {failure.last_line}")
    if incidents or findings.failures:
        yield line()
    for path in _files(report, out):
        yield line(Text(f"written: {path}", QUIET))
    yield line(_verdict(findings))


def lineage_blocks(findings: AuditResult, *, everywhere: bool) -> Iterator[Block]:
    """The lineage of partitions whose replicas part, or of all."""
    from fencepost.pipeline.audit.lineage.description import describe

    wanted = [
        (f"{summary.topic}-{summary.partition}", lineage)
        for summary in findings.summaries
        for lineage in summary.lineages
        if everywhere or lineage.parts
    ]
    for name, lineage in wanted if everywhere else wanted[:MAX_PARTED]:
        word = Text("parted", BAD) if lineage.parts else Text("lineage", QUIET)
        yield line(word, f"  {name}")
        for text in describe(lineage):
            yield line(f"  {text}")
        yield line()
    left = 0 if everywhere else len(wanted) - MAX_PARTED
    if left > 0:
        yield line(Text(f"{left:,} more partitions part; --lineage tells them", QUIET))
        yield line()


def _rule_row(tally: RuleTotals) -> tuple[Cell, ...]:
    if not tally.checked:
        return (tally.rule.name, Text(f"needs {tally.needed}", QUIET), "", "", "")
    if tally.violations:
        word = Text("broken", BAD)
    elif tally.failed:
        word = Text("failed", ODD)
    else:
        word = Text("holds", GOOD)
    counts = (tally.violations, tally.explained)
    return (tally.rule.name, word, *(f"{each:,}" for each in counts), tally.extent)


def _incident(incident: Incident) -> Iterator[Block]:
    if incident.is_open:
        word, because = Text("violation", BAD), ""
    elif incident.explanation is not None:
        word, because = Text("explained", QUIET), f" ({incident.explanation})"
    else:
        word, because = Text("suppressed", QUIET), f" ({incident.suppression})"
    yield line(word, f"  {incident.rule}  {incident.where}: {incident.message}{because}")
    more = ", ".join(f"{each.rule} {each.findings:,}" for each in incident.consequences)
    consequences = f", with it: {more}" if more else ""
    yield line(Text(f"{_INDENT}{incident.severity}{consequences}", QUIET))
    if incident.is_open:
        yield line(Text(f"{_INDENT}{incident.remedy}", QUIET))


def _verdict(findings: AuditResult) -> Cell:
    """The last line: how many violations there are, of how many causes, and all that is lost."""
    from fencepost.pipeline.audit.totals import (
        lost_text,
        pluralize,
    )

    lost = lost_text(findings)
    if findings.suppressed_count:
        lost = f"; {pluralize(findings.suppressed_count, 'finding')} suppressed{lost}"
    if findings.violation_count:
        causes = sum(each.is_open for each in findings.incidents)
        count = pluralize(findings.violation_count, "violation")
        of = f" of {pluralize(causes, 'cause')}" if causes < findings.violation_count else ""
        return Text(f"{count}{of}{lost}", BAD)
    if findings.failures:
        return Text(f"not complete: some rule could not be followed to its end{lost}", ODD)
    return Text(f"nothing found{lost}", ODD if lost else GOOD)
