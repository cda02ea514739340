"""``fencepost spark``, and what the commands audit, load and stream share.

The command installs what these need besides the package itself.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from fencepost.cli.output import complain, show_text
from fencepost.cli.typer_options import option

CANNOT_RUN: Final = 2
"""The exit code of a job that could not be run."""

Master = Annotated[
    str | None,
    option(
        "master",
        "MASTER",
        "Where Spark runs, as for spark-submit: local[2], spark://host:7077, yarn ...",
        unset="local[*,4], or what spark-submit says",
    ),
]


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Report what cannot run, and an unusable file, in one line, and exit with 2."""
    from fencepost.pipeline.requirements import CannotRunError

    try:
        yield
    except CannotRunError as error:
        _exit(str(error))
    except OSError as error:
        _exit(
            os_error_text(error)
            if error.filename is None
            else f"{error.filename}: {os_error_text(error)}"
        )


def _exit(why: str) -> NoReturn:
    complain(f"fencepost: {why}")
    raise typer.Exit(CANNOT_RUN) from None


def os_error_text(error: OSError) -> str:
    """The system's message, without its number and the name of the file."""
    return error.strerror.lower() if error.strerror else str(error)


def register(app: typer.Typer) -> None:
    """Add the commands to the others."""
    group = typer.Typer(
        name="spark",
        help="Set up Spark for audit, load and stream.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.command("setup")(setup)
    group.command("bundle")(bundle)
    app.add_typer(group)


def setup(
    force: Annotated[
        bool,
        option("anew", None, "Fetch the connector even if it is there."),
    ] = False,
) -> None:
    """Check Python packages and Java, and fetch Spark's Kafka connector with Maven."""
    with reporting_errors():
        from fencepost.pipeline.requirements import (
            SPARK_VERSION,
            fetch_connector,
            jars_folder,
            java_version,
            require_java,
            require_packages,
        )

        require_packages()
        java = require_java()
        jars = fetch_connector(force=force)
        show_text(f"Spark {SPARK_VERSION}")
        show_text(f"Java {java_version(java)}: {java}")
        show_text(f"Kafka connector, {len(jars)} jars: {jars_folder()}")


def bundle(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The target folder; created if it is missing.")
    ],
) -> None:
    """Write what spark-submit takes to run these commands, and print how.

    FOLDER gets fencepost.zip, main.py, and the jars of the Kafka connector. The packages that
    fencepost needs are to be installed wherever executors run.
    """
    with reporting_errors():
        from fencepost.pipeline.requirements import connector_jars
        from fencepost.pipeline.session import SUBMIT_MAIN, write_package

        found = connector_jars()
        folder.mkdir(parents=True, exist_ok=True)
        package = write_package(folder / "fencepost.zip")
        main = folder / "main.py"
        main.write_text(SUBMIT_MAIN, encoding="utf-8")
        copied = ",".join(str(shutil.copy(jar, folder)) for jar in found)
        submit = ["spark-submit", "--py-files", package, "--jars", copied, main, "audit", "--help"]
        show_text(shlex.join(map(str, submit)))
