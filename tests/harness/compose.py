"""The services of docker-compose.yml, run by podman alone, for machines without a compose.

It reads what that file uses: a target to build, command, environment with defaults, dependencies
that are to be healthy, profiles. Ports are not published, as they are fixed: clients are containers
of the same network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from tests.harness.container import ROOT, Container, Engine
from tests.harness.wait import wait_until

FILE: Final = ROOT / "docker-compose.yml"
_VARIABLE: Final = re.compile(r"\$\{(\w+):-([^}]*)\}")
_READ: Final = {
    "build",
    "cap_drop",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "ports",
    "profiles",
    "read_only",
}
_START_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The services that are up."""

    engine: Engine = field(repr=False)
    network: str
    containers: Mapping[str, Container]
    """By the name of their service, in the order in which they were started."""

    def run(self, service: str, *arguments: str) -> str:
        """Run the image of a service with other arguments beside the others; what it prints."""
        image = self.engine.built(_services()[service]["build"]["target"])
        return self.engine.podman("run", "--rm", "--network", self.network, image, *arguments).out


@contextmanager
def up(engine: Engine, *, profile: str, variables: Mapping[str, str]) -> Iterator[Composed]:
    """``compose --profile PROFILE up`` and, in the end, ``down``.

    :param variables: In place of environment variables; others have their default.
    """
    chosen = {
        name: service
        for name, service in _services().items()
        if profile in service.get("profiles", [profile])
    }
    containers: dict[str, Container] = {}
    with engine.network() as network, ExitStack() as down:
        while len(containers) < len(chosen):
            ready = (n for n, s in chosen.items() if n not in containers)
            name = next(n for n in ready if set(chosen[n].get("depends_on", ())) <= {*containers})
            for needed in chosen[name].get("depends_on", ()):
                _wait_until_healthy(engine, needed, containers[needed])
            options = ["--network", network, "--network-alias", name]
            options += _options(chosen[name], variables)
            image = engine.built(chosen[name]["build"]["target"])
            arguments = chosen[name].get("command", ())
            started = engine.podman("run", "--detach", *options, image, *arguments)
            containers[name] = Container(engine=engine, id=started.out.strip())
            down.callback(engine.podman, "rm", "--force", "--time", "0", containers[name].id)
        for name, container in containers.items():
            _wait_until_healthy(engine, name, container)
        yield Composed(engine=engine, network=network, containers=containers)


def _services() -> dict[str, dict[str, Any]]:
    """The services by name.

    :raises AssertionError: When one has what is not read here.
    """
    services: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
    for name, service in services.items():
        assert set(service) <= _READ, f"{name} has {sorted(set(service) - _READ)}"
    return services


def _options(service: Mapping[str, Any], variables: Mapping[str, str]) -> Iterator[str]:
    for name, text in service.get("environment", {}).items():
        filled = _VARIABLE.sub(lambda found: variables.get(found[1], found[2]), text)
        yield from ("--env", f"{name}={filled}")
    if service.get("read_only"):
        yield "--read-only"
    for capability in service.get("cap_drop", ()):
        yield from ("--cap-drop", capability)


def _wait_until_healthy(engine: Engine, name: str, container: Container) -> None:
    def is_healthy() -> bool:
        assert container.state["Running"], container.log()
        # Without systemd nothing else runs the check.
        return engine.podman("healthcheck", "run", container.id, code=None).code == 0

    wait_until(f"{name} is healthy", is_healthy, timeout_s=_START_S)
