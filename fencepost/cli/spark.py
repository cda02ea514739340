"""``fencepost spark``: what audit, load and stream need besides the package itself."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from fencepost.cli.declared import option
from fencepost.cli.jobs import running


def register(app: typer.Typer) -> None:
    """Add the commands to the others."""
    group = typer.Typer(
        name="spark",
        help="Set up what audit, load and stream run on.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.command("setup")(setup)
    group.command("bundle")(bundle)
    app.add_typer(group)


def setup(
    anew: Annotated[
        bool,
        option("anew", None, "Fetch the connector even if it is there."),
    ] = False,
) -> None:
    """Look for Python packages and Java, and fetch Spark's Kafka connector with Maven."""
    with running():
        from fencepost.pipeline.connector import fetch, home
        from fencepost.pipeline.needs import SPARK, java_version, need_java, need_packages

        need_packages()
        java = need_java()
        jars = fetch(anew=anew)
        print(f"Spark {SPARK}")
        print(f"Java {java_version(java)}: {java}")
        print(f"Kafka connector, {len(jars)} jars: {home()}")


def bundle(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to; made if need be.")],
) -> None:
    """Write what spark-submit takes to run these commands, and print how.

    FOLDER gets fencepost.zip, main.py, and the jars of the Kafka connector. The packages that
    fencepost needs are to be installed wherever executors run.
    """
    with running():
        from fencepost.pipeline.connector import jars
        from fencepost.pipeline.shipping import MAIN, write_package

        found = jars()
        folder.mkdir(parents=True, exist_ok=True)
        package = write_package(folder / "fencepost.zip")
        main = folder / "main.py"
        main.write_text(MAIN, encoding="utf-8")
        copied = ",".join(str(shutil.copy(jar, folder)) for jar in found)
        submit = ["spark-submit", "--py-files", package, "--jars", copied, main, "audit", "--help"]
        print(shlex.join(map(str, submit)))
