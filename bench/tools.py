"""What the benchmarks build or fetch before they start: the C clients, kfake, Kafka's jars.

Everything lands in one cache directory outside the tree (``FENCEPOST_BENCH_CACHE``, by default
``fencepost-bench`` in the user's cache directory) and is built again when its source changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
KAFKA_VERSION = "4.3.1"
BUILD_TIMEOUT_S = 600


class Missing(Exception):
    """A tool or a peer is not to be had on this machine; the message says what to install."""


def cache_directory() -> Path:
    fallback = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fencepost-bench"
    path = Path(os.environ.get("FENCEPOST_BENCH_CACHE") or fallback)
    path.mkdir(parents=True, exist_ok=True)
    return path


def compiled(name: str) -> Path:
    """The C program ``bench/c/NAME.c``, built against librdkafka.

    :raises Missing: Without gcc, librdkafka's headers, or when the build fails.
    """
    source = HERE / "c" / f"{name}.c"
    target = _target(name, source)
    if not target.exists():
        _need("gcc", "a C compiler")
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-pthread"]
        command += ["-o", _aside(target), str(source), "-lrdkafka"]
        _build(command, HERE, "librdkafka's headers (Debian: librdkafka-dev)")
        _into_place(target)
    return target


def kfake() -> Path:
    """The program kfake, built from the Go proxy at the versions of ``bench/go/go.sum``.

    :raises Missing: Without Go or the proxy.
    """
    folder = HERE / "go"
    target = _target("kfake", folder / "main.go", folder / "go.mod")
    if not target.exists():
        _need("go", "Go, to build kfake")
        _build(["go", "build", "-trimpath", "-o", _aside(target), "."], folder, "the Go proxy")
        _into_place(target)
    return target


def kafka_jars() -> Path:
    """A directory with the jars of an Apache Kafka broker; ``KAFKA_JARS`` names one to use.

    :raises Missing: Without Java or Maven.
    """
    _need("java", "Java 17 or newer, to run Apache Kafka")
    given = os.environ.get("KAFKA_JARS")
    if given:
        return Path(given)
    target = cache_directory() / f"kafka-{KAFKA_VERSION}"
    if not target.exists():
        _need("mvn", "Maven, to fetch Apache Kafka (or set KAFKA_JARS)")
        options = [f"-Dkafka.version={KAFKA_VERSION}", "-DincludeScope=runtime"]
        output = f"-DoutputDirectory={_aside(target)}"
        command = ["mvn", "-B", "-q", "dependency:copy-dependencies", *options, output]
        _build(command, HERE / "kafka", "Maven's repository")
        _into_place(target)
    return target


def _target(name: str, *sources: Path) -> Path:
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    return cache_directory() / f"{name}-{digest.hexdigest()[:12]}"


def _aside(target: Path) -> str:
    """Where a build writes, so that an interrupted one never passes for a finished one."""
    return f"{target}.part"


def _into_place(target: Path) -> None:
    Path(_aside(target)).rename(target)


def _need(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise Missing(f"{program} not found: install {what}")


def _build(command: list[str], directory: Path, needs: str) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Missing(f"{command[0]} failed; it needs {needs}: {' '.join(last)}")
