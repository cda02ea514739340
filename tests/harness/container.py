"""The image of this checkout, built and run by podman, as root or as a user without root.

No registry is needed on a Debian with mmdebstrap: it makes the base, from the package sources of
the machine; elsewhere podman pulls what the Dockerfile names. Debian:
``apt-get install podman runc iptables netavark aardvark-dns mmdebstrap``.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.harness.cache import alone
from tests.harness.process import start
from tests.harness.require import tool
from tests.harness.run import Finished, run
from tests.harness.wait import wait_until

ROOT: Final = Path(__file__).parents[2]
_OFFICIAL_BASE: Final = "docker.io/library/python:3.11-slim"
_MADE_BASE: Final = "localhost/fencepost-test-base:1"
_PACKAGES: Final = "python3-minimal,python3-venv,python3-pip,ca-certificates"
_CA: Final = "/etc/ssl/certs/ca-certificates.crt"
_BUILD_S: Final = 280
# Without systemd, and so everywhere: no cgroups of its own, events in a file.
_CONF: Final = """\
[containers]
default_ulimits=["nofile=16384:16384","nproc=16384:16384"]
[engine]
runtime="{runtime}"
cgroup_manager="cgroupfs"
events_logger="file"
[network]
network_backend="netavark"
"""


class Engine:
    """Podman, and the image that it has built.

    :param folder: For its configuration, and what a build needs.
    """

    def __init__(self, folder: Path) -> None:
        self._podman = tool("podman")
        self._folder = folder
        conf = folder / "containers.conf"
        conf.write_text(_CONF.format(runtime="crun" if shutil.which("crun") else "runc"))
        self._built: set[str] = set()
        self._env = {**os.environ, "CONTAINERS_CONF": str(conf)}

    def podman(
        self, *arguments: str, code: int | None = 0, timeout_s: float = 60, stdin: str = ""
    ) -> Finished:
        """Run podman to its end."""
        command = [self._podman, "--log-level", "fatal", *arguments]
        return run(command, env=self._env, code=code, timeout_s=timeout_s, stdin=stdin)

    @cached_property
    def image(self) -> str:
        """The image of this checkout."""
        return self.built("fencepost")

    def built(self, target: str) -> str:
        """The image of a target of the Dockerfile, built when it is first asked for."""
        name = "localhost/fencepost-test"
        if target != "fencepost":
            name += f"-{target}"
        if target in self._built:
            return name
        with alone("container-image"):
            options = ["--format", "docker", "--isolation", "chroot", "--layers"]
            options += ["--build-arg", f"BASE={self.base}", "--target", target]
            self.podman(
                "build", *options, *self._volumes(), "-t", name, str(ROOT), timeout_s=_BUILD_S
            )
        self._built.add(target)
        return name

    @cached_property
    def base(self) -> str:
        """The image that it is built on."""
        system = platform.freedesktop_os_release()
        if system["ID"] != "debian" or shutil.which("mmdebstrap") is None:
            return _OFFICIAL_BASE
        if self.podman("image", "exists", _MADE_BASE, code=None).code:
            tar, release = self._folder / "base.tar", system["VERSION_CODENAME"]
            options = ["--variant=minbase", f"--include={_PACKAGES}"]
            command = [tool("mmdebstrap"), *options, release, str(tar), *_sources(release)]
            run(command, timeout_s=_BUILD_S)
            self.podman("import", str(tar), _MADE_BASE)
            tar.unlink()
        return _MADE_BASE

    def size(self, image: str) -> int:
        """The bytes of an image with all its layers."""
        return int(self.podman("image", "inspect", "--format", "{{.Size}}", image).out)

    @contextmanager
    def network(self) -> Iterator[str]:
        """A network of its own, in which containers know each other's names."""
        name = f"fencepost-test-{uuid4().hex[:8]}"
        self.podman("network", "create", name)
        try:
            yield name
        finally:
            self.podman("network", "rm", "--force", name)

    @contextmanager
    def running(
        self,
        *options: str,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Iterator[Container]:
        """A container of the image, once it serves; in the end it is removed."""
        variables = [
            part for name, text in (env or {}).items() for part in ("-e", f"{name}={text}")
        ]
        started = self.podman("run", "--detach", *options, *variables, self.image, *arguments)
        container = Container(engine=self, id=started.out.strip())
        try:
            wait_until("the container serves", lambda: container.is_ready)
            yield container
        finally:
            self.podman("rm", "--force", "--time", "0", container.id)

    @contextmanager
    def service(self) -> Iterator[str]:
        """Docker's API, by podman; its URL."""
        url = f"unix://{self._folder / 'podman.sock'}"
        command = [self._podman, "system", "service", "--time", "0", url]
        process = start("podman", command, self._folder / "service.log", env=self._env)
        try:
            wait_until("the API is served", (self._folder / "podman.sock").exists)
            yield url
        finally:
            process.stop(expect=None)

    def _volumes(self) -> list[str]:
        """What pip in a build needs to trust the index that this machine uses."""
        trusted = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile or _CA
        conf = self._folder / "pip.conf"
        index = os.environ.get("PIP_INDEX_URL")
        lines = ["[global]", f"cert={_CA}", *([f"index-url={index}"] if index else [])]
        conf.write_text("\n".join(lines))
        return ["-v", f"{trusted}:{_CA}:ro", "-v", f"{conf}:/etc/pip.conf:ro"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container that runs."""

    engine: Engine = field(repr=False)
    id: str

    @property
    def is_ready(self) -> bool:
        """Whether it has said where it listens.

        :raises AssertionError: When it has ended instead.
        """
        assert self.state["Running"], self.log()
        return bool(self.ready)

    @property
    def ready(self) -> dict[str, Any]:
        """The ready line; empty before it is there."""
        lines = self.engine.podman("logs", self.id).out.splitlines()
        found: dict[str, Any] = json.loads(lines[0]) if lines else {}
        return found

    @property
    def state(self) -> dict[str, Any]:
        """As podman inspects it."""
        shown = self.engine.podman("inspect", "--format", "{{json .State}}", self.id).out
        found: dict[str, Any] = json.loads(shown)
        return found

    def log(self) -> str:
        """What it has written to both of its streams."""
        done = self.engine.podman("logs", self.id)
        return done.out + done.err

    def execute(self, *command: str, code: int | None = 0) -> Finished:
        """Run a command in it."""
        return self.engine.podman("exec", self.id, *command, code=code)


def _sources(release: str) -> list[str]:
    """The files of this machine's package sources that have the packages of its release."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    return [
        str(each)
        for each in files
        if each.is_file() and release in (text := each.read_text()) and "debian" in text.lower()
    ]
