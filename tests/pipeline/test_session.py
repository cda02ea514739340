"""The session that jobs run in."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pytest

from fencepost.pipeline.requirements import JARS_VARIABLE, SPARK_VERSION, CannotRunError
from fencepost.pipeline.session import open_session, session
from tests.harness.run import run
from tests.harness.spark import jars, need_spark, quick_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.harness.served_cluster import Cluster


class Start(Protocol):
    """Starts Spark with the Kafka connector or without; returns what it would be told to be."""

    def __call__(self, connector: bool, **configs: str) -> Mapping[str, str]: ...


UNIX_SOCKET: Final = "spark.python.unix.domain.socket"
TWO_SESSIONS: Final = """
import sys
from fencepost.pipeline.session import session

bootstrap, topic = sys.argv[1:]
where = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "subscribe": topic}
with session("without it", master="local[2,4]") as spark:
    assert spark.range(3).count() == 3
with session("with it", master="local[2,4]", connector=True) as spark:
    rows = spark.range(3).selectExpr("string(id) AS value")
    rows.write.format("kafka").options(**where).save()
    print(spark.read.format("kafka").options(**where).load().count())
"""


def test_a_session_that_is_there_is_used_and_left(spark: SparkSession) -> None:
    with session("another", master="spark://nowhere:7077") as same:
        assert same is spark
    assert spark.range(3).count() == 3


def test_a_session_of_another_thread_is_used_and_left(spark: SparkSession) -> None:
    def use() -> bool:
        with session("another", configs={"spark.sql.shuffle.partitions": "7"}) as found:
            return found is spark

    with ThreadPoolExecutor(1) as other:
        assert other.submit(use).result()
    assert spark.range(3).count() == 3
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_session_knows_the_kafka_connector(spark_with_kafka: SparkSession) -> None:
    source = spark_with_kafka.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    assert source.option("subscribe", "any").load().columns[:2] == ["key", "value"]


def test_a_session_has_the_connector_after_one_that_did_not_need_it(cluster: Cluster) -> None:
    need_spark()
    topic = cluster.create_topic("later")
    quick = {"JDK_JAVA_OPTIONS": quick_jvm()}
    env = {**os.environ, **quick, JARS_VARIABLE: str(jars()), "PYTHONPATH": ""}
    # A process of its own: the JVM of this one has the connector already.
    command = [sys.executable, "-c", TWO_SESSIONS, cluster.bootstrap, topic]
    assert run(command, timeout_s=240, env=env).lines == ["3"]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Start:
    """Nothing starts; the folder of jars, which is Spark's configuration's too, is empty."""
    need_spark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    found: dict[str, str] = {}

    def refused(builder: SparkSession.Builder) -> SparkSession:
        found.update(builder._options)
        raise ConnectionRefusedError(111, "Connection refused")

    def asked(connector: bool, **configs: str) -> Mapping[str, str]:
        found.clear()
        with pytest.raises(CannotRunError, match=r"^Spark does not start: its Java process ended$"):
            open_session("none", connector=connector, configs=configs)
        return found

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SPARK_CONF_DIR", JARS_VARIABLE):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refused)
    return asked


@pytest.fixture
def fetched(tmp_path: Path) -> str:
    """The connector, as if it was fetched; as Spark wants to have it."""
    path = tmp_path / f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar"
    path.touch()
    return str(path)


@pytest.mark.parametrize("needed", [False, True])
def test_a_connector_that_is_there_is_always_given(
    start: Start, fetched: str, needed: bool
) -> None:
    assert start(needed)["spark.jars"] == fetched


def test_a_connector_that_was_never_fetched_is_missed_by_who_needs_it(
    start: Start, tmp_path: Path
) -> None:
    with pytest.raises(CannotRunError, match=rf"^no Kafka connector in {tmp_path}: fencepost sp"):
        open_session("none", connector=True)
    assert "spark.jars" not in start(False)


@pytest.mark.parametrize("line", ["spark.jars  /own.jar", "a b\n\tspark.jars.packages=a:b:1"])
def test_jars_of_sparks_own_configuration_stay(
    start: Start, fetched: str, tmp_path: Path, line: str
) -> None:
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text(f"{line}\n")
    assert "spark.jars" not in start(False)
    assert start(True)["spark.jars"] == fetched
    defaults.write_text(f"spark.driver.memory 2g\n# {line.splitlines()[-1]}\n")
    assert start(False)["spark.jars"] == fetched


@pytest.mark.parametrize("name", ["spark.jars", "spark.jars.packages"])
def test_jars_of_a_sessions_own_configuration_stay(start: Start, fetched: str, name: str) -> None:
    assert start(False, **{name: "own"}).get("spark.jars") != fetched
    assert start(False, **{"spark.ui.enabled": "false"})["spark.jars"] == fetched


def test_sparks_own_configuration_is_in_its_home(
    start: Start, fetched: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert start(False)["spark.jars"] == fetched
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.jars=/own.jar")
    assert "spark.jars" not in start(False)


@pytest.mark.parametrize("given", ["--jars /own.jar", "--packages=a:b:1", "--conf spark.jars=/own"])
def test_jars_of_the_arguments_for_spark_stay(
    start: Start, fetched: str, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{given} pyspark-shell")
    assert "spark.jars" not in start(False)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
    assert start(False)["spark.jars"] == fetched


def test_a_session_knows_fencepost(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="/nowhere is not a directory"):
        spark.read.format("fencepost").load("/nowhere").count()


def test_python_workers_here_are_reached_by_sockets_of_this_user_alone(
    spark: SparkSession,
) -> None:
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
    folder = Path(spark.conf.get(f"{UNIX_SOCKET}.dir") or "")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any(path.is_socket() for path in folder.iterdir())


def test_where_the_path_of_a_socket_would_be_too_long_there_is_none(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert f"{UNIX_SOCKET}.dir" in start(False)
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert not {name for name in start(False) if name.startswith(UNIX_SOCKET)}


def test_a_spark_that_does_not_start_says_so_in_one_line() -> None:
    need_spark()
    code = (
        "from fencepost.pipeline.session import session\n"
        "with session('none', configs={'spark.local.dir': '/dev/null/nowhere'}):\n"
        "    pass\n"
    )
    env = {**os.environ, "JDK_JAVA_OPTIONS": quick_jvm(), "PYTHONPATH": ""}
    told = run([sys.executable, "-c", code], code=1, timeout_s=120, env=env).err.splitlines()
    assert told[-1].startswith(
        "fencepost.pipeline.requirements.CannotRunError: Spark does not start: "
    )


def test_a_java_that_ends_while_spark_starts_is_told(start: Start) -> None:
    assert start(False)["spark.app.name"] == "none"
