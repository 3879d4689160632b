"""`s3sink operator` as a cluster runs it: a process of its own, reached by its port, ended by its id.

It speaks to the API server of a kubeconfig, which may lead through `devtools.faults.kube_proxy`. One process is one
replica.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3

from devtools.fork_server import forked
from devtools.processes import Process, wait_until

IMAGE = "registry.example.com/s3sink-job:1"
_IMPORTS = ("sink_job.cli.main", "s3sink_operator.main", "pytest")
_numbers = itertools.count(1)


def _unrestricted(folder: Path) -> Path:
    """A configuration file by which sinks may have any pod template."""
    file = folder / "unrestricted.yaml"
    file.write_text("sinkRestrictions: {enabled: false}\n")
    return file


class Operator(Process):
    """One replica, without a Lease unless `flags` say otherwise. It looks after `namespace`; None: all of them.

    `under`: a command that runs it, such as `taskset`. `forked`: from a process that has imported it already, which
    takes a tenth of the time to begin, and is the same from there on. Without `--config` in `flags`, sinks are not
    restricted.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        namespace: str | None,
        *flags: str,
        under: Sequence[str] = (),
        forked: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._forked = forked
        command = [] if forked else [*under, sys.executable, "-m", "sink_job.cli.main"]
        base = ["operator", "--image", IMAGE, "--port", "0", "--log", "json", "--cluster-id", "tests"]
        base += ["--namespace", namespace] if namespace else []
        if "--config" not in flags:
            base += ["--config", str(_unrestricted(folder))]
        super().__init__(
            [*command, *base, *flags],
            log=folder / f"operator-{next(_numbers)}.log",
            env={"KUBECONFIG": str(kubeconfig)},
            cwd=folder,
        )

    def _start(self, command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None) -> Any:
        if not self._forked:
            return super()._start(command, log, env, cwd)
        return forked(_main, command, imports=_IMPORTS, log=log, env=env, cwd=cwd)

    def wait_ready(self, seconds: float = 60) -> None:
        """Returns when it has read its lists and works; `ServerFailedError` with its log otherwise."""
        wait_until(lambda: self._status("/readyz") == 200, f"{self}: ready", seconds=seconds, unless=self.failed)

    @property
    def port(self) -> int | None:
        """Where it serves /metrics and health; None until its log has the port."""
        found = re.search(r"health on port (\d+)", self.log)
        return int(found[1]) if found else None

    def lines(self) -> list[dict[str, Any]]:
        """Its log, as far as it is JSON."""
        found = []
        for line in self.log.splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def troubles(self) -> list[str]:
        """What it has said at the level of warnings and above."""
        return [f"{line['message']} {line.get('trace', '')}" for line in self.lines() if line["level"] != "INFO"]

    def metrics(self) -> str:
        """The text of /metrics."""
        return self._get("/metrics").data.decode()

    def health(self) -> int:
        """The HTTP status at /healthz."""
        return self._status("/healthz")

    def _status(self, path: str) -> int:
        try:
            return self._get(path).status
        except urllib3.exceptions.HTTPError:
            return 0

    def _get(self, path: str) -> urllib3.BaseHTTPResponse:
        address = f"http://127.0.0.1:{self.port or 1}{path}"
        return urllib3.request("GET", address, timeout=20, retries=False)


def _main(argv: Sequence[str]) -> int:
    from sink_job.cli.main import main

    return main(argv)


@contextlib.contextmanager
def operator(folder: Path, kubeconfig: Path, namespace: str | None, *flags: str) -> Iterator[Operator]:
    """An `Operator` that is ready; whatever becomes of it, nothing of it is left at the end."""
    process = Operator(folder, kubeconfig, namespace, *flags, forked=True)
    try:
        process.wait_ready()
        yield process
    finally:
        process.kill()
