"""What must be there before a job runs: what is missing is told in one line, with exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.cli import main
from fencepost.pipeline import requirements
from fencepost.pipeline.requirements import (
    SPARK_VERSION,
    CannotRunError,
    java_version,
    require_java,
    require_packages,
)
from tests.harness.run import run
from tests.harness.spark import jars

if TYPE_CHECKING:
    from collections.abc import Callable

JARS: Final = [
    "commons-pool2",
    "kafka-clients",
    "spark-sql-kafka-0-10",
    "spark-tags",
    "spark-token-provider-kafka-0-10",
]
MAVEN: Final = """
    for each in "$@"; do case $each in -DoutputDirectory=*) folder=${each#*=}; esac; done
    /bin/mkdir "$folder"
    echo > "$folder/spark-sql-kafka-0-10_2.13-%s.jar"
    echo > "$folder/%s.jar"
"""
"""Copies a connector of a version, and one other jar."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Makes a program of a shell script; those that were made are all that is on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the jars are meant to be, and are not."""
    folder = tmp_path / "cache" / "jars"
    monkeypatch.setenv(requirements.JARS_VARIABLE, str(folder))
    return folder


def test_the_packages_of_the_extra_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(
        CannotRunError,
        match=r"^pyspark, pyarrow not installed: install them with \S*python\S* -m pip ",
    ):
        require_packages()


def test_java_is_the_one_of_java_home(
    program: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CannotRunError, match=r"Java 17 or later; there is no java on the path$"):
        require_java()
    found = program("java", """echo 'openjdk version "21.0.1" 2023-10-17' >&2""")
    assert require_java() == str(found)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(CannotRunError, match=r"there is no java in JAVA_HOME \(.*nowhere\)$"):
        require_java()


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('java version "1.8.0_391"', 8),
        ('openjdk version "11.0.21" 2023-10-17 LTS', 11),
        ('openjdk version "16" 2021-03-16', 16),
        ("no words of its version", 0),
    ],
)
def test_an_old_java_is_refused(
    program: Callable[[str, str], Path], told: str, version: int
) -> None:
    found = program("java", f"echo '{told}' >&2")
    assert java_version(str(found)) == version
    with pytest.raises(CannotRunError, match=rf"{found} is Java {version}$"):
        require_java()


def test_the_connector_is_what_maven_fetches() -> None:
    fetched = sorted(jars().glob("*"))
    assert [each.name.rpartition("-")[0].removesuffix("_2.13") for each in fetched] == JARS
    assert fetched[2].name == f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"


def test_the_connector_is_of_the_version_of_spark() -> None:
    assert requirements.CONNECTOR_POM.read_text().count(f"<version>{SPARK_VERSION}</version>") == 1


def test_a_connector_that_was_never_fetched_is_told(home: Path) -> None:
    with pytest.raises(CannotRunError, match=rf"no Kafka connector in {home}: fencepost spark"):
        requirements.connector_jars()


def test_without_maven_nothing_is_fetched(home: Path, program: Callable[[str, str], Path]) -> None:
    with pytest.raises(CannotRunError, match="there is no mvn on the path"):
        requirements.fetch_connector()


def test_what_maven_says_is_told_and_leaves_nothing_behind(
    home: Path, program: Callable[[str, str], Path]
) -> None:
    program("mvn", "echo '[ERROR] Could not find artifact a:b'; echo '[ERROR] more'; exit 1")
    with pytest.raises(CannotRunError, match=r"connector: Could not find artifact a:b$"):
        requirements.fetch_connector()
    program("mvn", "exit 3")
    with pytest.raises(CannotRunError, match=r"connector: exit code 3$"):
        requirements.fetch_connector()
    assert not list(home.parent.iterdir())


def test_the_jars_are_fetched_once(home: Path, program: Callable[[str, str], Path]) -> None:
    wanted = f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"
    program("mvn", MAVEN % (SPARK_VERSION, "first"))
    assert [each.name for each in requirements.fetch_connector()] == ["first.jar", wanted]
    program("mvn", MAVEN % (SPARK_VERSION, "second"))
    assert [each.name for each in requirements.fetch_connector()] == ["first.jar", wanted]
    assert [each.name for each in requirements.fetch_connector(force=True)] == [
        "second.jar",
        wanted,
    ]
    assert requirements.connector_jars() == requirements.fetch_connector()
    assert [each.name for each in home.parent.iterdir()] == ["jars"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["notes.txt"], "notes.txt"),
        (["spark-core.jar", "spark-sql.jar"], "spark-core.jar"),
        ([f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar", "notes.txt"], "notes.txt"),
    ],
)
def test_a_folder_of_other_files_is_not_replaced(
    home: Path, program: Callable[[str, str], Path], names: list[str], told: str
) -> None:
    program("mvn", MAVEN % (SPARK_VERSION, "first"))
    home.mkdir(parents=True)
    for name in names:
        (home / name).touch()
    with pytest.raises(CannotRunError, match=f"{home} holds other files, such as {told}, and"):
        requirements.fetch_connector(force=True)
    assert sorted(each.name for each in home.iterdir()) == sorted(names)


def test_a_file_in_place_of_the_folder_is_told(home: Path) -> None:
    home.parent.mkdir()
    home.touch()
    with pytest.raises(CannotRunError, match=f"{home} is no folder: FENCEPOST_SPARK_JARS has to"):
        requirements.fetch_connector()


def test_the_jars_of_another_version_are_replaced(
    home: Path, program: Callable[[str, str], Path]
) -> None:
    program("mvn", MAVEN % (SPARK_VERSION, "new"))
    home.mkdir(parents=True)
    (home / "spark-sql-kafka-0-10_2.13-4.0.0.jar").touch()
    (home / "old.jar").touch()
    wanted = f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"
    assert [each.name for each in requirements.fetch_connector()] == ["new.jar", wanted]


def test_the_jars_are_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirements.JARS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert requirements.jars_folder() == Path(f"/somewhere/fencepost/spark-{SPARK_VERSION}-jars")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/one")
    assert requirements.jars_folder() == Path(
        f"/home/one/.cache/fencepost/spark-{SPARK_VERSION}-jars"
    )


def test_one_command_sets_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(requirements.JARS_VARIABLE, str(jars()))
    assert main(["spark", "setup"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"Spark {SPARK_VERSION}"
    assert told[1].startswith("Java ")
    assert told[2] == f"Kafka connector, 5 jars: {jars()}"


def test_setting_up_tells_what_is_missing(
    home: Path, program: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "setup"]) == 2
    assert capsys.readouterr() == (
        "",
        "fencepost: Spark needs Java 17 or later; there is no java on the path\n",
    )


@pytest.mark.parametrize("command", ["audit", "load", "stream", "spark"])
def test_help_needs_no_spark(command: str) -> None:
    """The command line stays quick, and helps where the extra is not installed."""
    code = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'numpy', 'pandas', 'jinja2', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "from fencepost.cli import main\n"
        f"sys.exit(main(['{command}', '--help']))\n"
    )
    assert "Usage: " in run([sys.executable, "-c", code]).out
