"""`make demo-cluster`: the demo's flights through a real Kubernetes.

The chart is installed, a sink applied, its driver and executors run as pods; the driver is deleted in the middle of it
all, the sink recovers, and everything is checked. Without arguments it sets up a Kubernetes of one node, which
is gone afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from demo.console import Show
from demo.flights import Flights
from demo.kube import CHART, ROOT, Given, Kube, kubernetes
from demo.scenario import query
from demo.servers import Servers
from devtools import bucket_listing
from devtools.kube.fake_driver_report import REPORT_PORT
from devtools.processes import ServerFailedError, wait_until
from devtools.s3 import ACCESS_KEY, SECRET_KEY
from devtools.sink_process import SinkCommand
from devtools.topics import Topics
from s3sink_operator.names import REPORT_TOKEN_ANNOTATION
from sink_job.api.report import Report

MANIFEST = ROOT / "examples" / "cluster.yaml"
OPERATIONS, DATA = "s3sink-demo-operator", "s3sink-demo"
_PATIENCE_S = 600
_DELETE_AFTER_OBJECTS = 12


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.cluster", description=__doc__)
    parser.add_argument("--context", help="a context of your kubeconfig, in place of a cluster of the demo's own")
    parser.add_argument("--host", help="with --context: this machine's address, as pods of that cluster reach it")
    parser.add_argument("--operator-image", help="with --context: an image of target operator that its nodes can pull")
    parser.add_argument("--job-image", help="with --context: an image of target job that its nodes can pull")
    parser.add_argument("--keep", action="store_true", help="leave it all running to play with, until Ctrl-C")
    args = parser.parse_args()
    given = [args.context, args.host, args.operator_image, args.job_image]
    if any(given) and not all(given):
        parser.error("--context, --host, --operator-image and --job-image go together")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all is taken down on the way out
    show = Show()

    def played() -> int:
        with tempfile.TemporaryDirectory(prefix="s3sink-demo-", ignore_cleanup_errors=True) as name:
            good = play(show, Path(name), Given(*given) if args.context else None, keep=args.keep)
        return show.result(good)

    return show.outcome(played)


def play(show: Show, folder: Path, given: Given | None, *, keep: bool = False) -> bool:
    """Runs it all; True when every check held. What it has set up is gone afterwards; with `keep`, after Ctrl-C."""
    show.console.print("[bold]s3sink on Kubernetes[/bold]: apply a sink, lose its driver, find every record once")
    show.step("A Kubernetes" if given is None else f"Your Kubernetes, context {given.context}")
    with kubernetes(show, given) as kube:
        show.say(kube.run("version").replace("\n", "  ").strip())
        show.step("Kafka and S3 on this machine, and a real data set")
        servers = Servers(folder, manifest=MANIFEST, host=kube.host)
        try:
            servers.fetch(show)
            servers.start(show)
            flights = Flights()
            topics = servers.fill(show, flights)
            try:
                good = _Scenario(show, kube, servers, topics, flights).run()
                if keep:
                    _wait(show, kube, servers)
                return good
            finally:
                _tidy(kube)
        finally:
            servers.stop()


def _wait(show: Show, kube: Kube, servers: Servers) -> None:
    """Says where everything is, and stays until Ctrl-C."""
    show.console.print(
        "\nIt all stays up until Ctrl-C. In another terminal:\n\n"
        + ("" if kube.flags else f"  export KUBECONFIG={kube.environment['KUBECONFIG']}\n")
        + f"  export PATH={kube.kubectl.parent}:{Path(sys.executable).parent}:$PATH\n"
        + f"  kubectl get s3sinks --namespace {DATA} --output wide\n"
        f"  kubectl s3sink resume flights --namespace {DATA}\n\n"
        f"Pods reach Kafka at {servers.kafka.bootstrap} and S3 at {servers.s3.endpoint} (bucket {servers.bucket}; the "
        f"Secret flights-s3 of the namespace {DATA} has its keys). The manifest as it was applied, for sinks of your "
        f"own: {servers.folder / MANIFEST.name}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


def _tidy(kube: Kube) -> None:
    """Takes from a cluster that stays what the demo has brought. The CRD stays: other sinks would go with it."""
    kube.run("delete", "s3sinks", "--all", "--namespace", DATA, "--ignore-not-found", "--wait=false")
    kube.helm("uninstall", "s3sink", "--namespace", OPERATIONS, "--ignore-not-found")
    kube.run("delete", "namespace", DATA, OPERATIONS, "--ignore-not-found", "--wait=false")


class _Scenario:
    """The chart, the sink, the lost driver, the proof."""

    def __init__(self, show: Show, kube: Kube, servers: Servers, topics: Topics, flights: Flights) -> None:
        self.show, self.kube, self.servers, self.topics, self.flights = show, kube, servers, topics, flights
        self.name = str(servers.manifest["metadata"]["name"])
        self.driver = f"{self.name}-s3sink-driver"

    def run(self) -> bool:
        self.install()
        self.apply()
        self.lose_the_driver()
        self.read_all()
        self.stop()
        self.verify()
        return query(self.show, self.servers, self.flights)

    def install(self) -> None:
        self.show.step("helm install: the operator and the CustomResourceDefinition")
        sets = [*_image("image", self.kube.operator_image), *_image("jobImage", self.kube.job_image)]
        words = ["--namespace", OPERATIONS, "--create-namespace", "--wait", "--timeout", "5m"]
        with self.show.spinner("waiting for the operator"):
            self.kube.helm("upgrade", "--install", "s3sink", CHART, *words, *sets)
        self.show.say(self.kube.run("get", "deployments", "--namespace", OPERATIONS, "--no-headers").strip())

    def apply(self) -> None:
        self.show.step(f"kubectl apply -f {MANIFEST.relative_to(ROOT)}")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DATA, "labels": _RESTRICTED}}
        self._apply(namespace)
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "flights-s3", "namespace": DATA}}
        self._apply(secret | {"stringData": keys})
        self.servers.manifest["metadata"]["namespace"] = DATA
        self.servers.write_manifest(self.servers.s3.endpoint)
        self._apply(self.servers.manifest)
        with self.show.spinner("waiting until the sink is Ready"):
            timeout = f"--timeout={_PATIENCE_S}s"
            self._kubectl("wait", "--for=condition=Ready", f"s3sink/{self.name}", timeout)
        self.show.say(f"Ready after {self.show.lap():.0f} s")
        self._tell_pods()

    def lose_the_driver(self) -> None:
        self.show.step("kubectl delete pod --force: the driver is gone in the middle of it all")
        client, bucket = self.servers.s3.client(), self.servers.bucket
        self._watch(lambda: len(bucket_listing.objects(client, bucket)) >= _DELETE_AFTER_OBJECTS)
        before = self._uid()
        self._kubectl("delete", "pod", self.driver, "--force", "--grace-period=0")
        self.show.say(
            f"left behind: {len(bucket_listing.objects(client, bucket))} whole objects, "
            f"{len(bucket_listing.uploads(client, bucket))} open uploads (not visible)"
        )
        with self.show.spinner("waiting for the next driver"):
            wait_until(lambda: self._uid() not in (before, None), "the next driver", seconds=_PATIENCE_S)
        self._kubectl("wait", "--for=condition=Ready", f"s3sink/{self.name}", f"--timeout={_PATIENCE_S}s")
        self.show.say(f"Ready again after {self.show.lap():.0f} s")
        self._tell_pods()

    def read_all(self) -> None:
        self.show.step("The rest of the topic")
        self._watch(self._has_read_all)
        self.show.say(f"all of it read after {self.show.lap():.0f} s; the last month's objects are still open")

    def stop(self) -> None:
        self.show.step(f"kubectl s3sink stop {self.name}: what is open is published")
        with self.show.spinner("waiting until it is Stopped"):
            self.kube.plugin("stop", self.name, "--namespace", DATA, "--wait", "--timeout", f"{_PATIENCE_S}s")
        self._watch(lambda: True)
        self.show.say("kubectl s3sink status:")
        status = self.kube.plugin("status", self.name, "--namespace", DATA)
        self.show.console.print(status.rstrip(), markup=False, highlight=False, soft_wrap=True)

    def verify(self) -> None:
        self.show.step("s3sink verify --deep: every record in exactly one object, compared with Kafka's own")
        document: dict[str, Any] = yaml.safe_load((self.servers.folder / MANIFEST.name).read_text())
        del document["spec"]["s3"]["credentials"]  # this process has them in its environment
        sink = SinkCommand(self.servers.folder / "verify", document)
        with self.show.spinner("verifying"):
            verified = sink.must("verify", "--deep", seconds=_PATIENCE_S)
        self.show.console.print(verified.rstrip(), markup=False, highlight=False, soft_wrap=True)

    def _watch(self, is_so: Callable[[], bool]) -> None:
        """A bar of the committed offsets until then."""
        group = f"s3sink-{DATA}.{self.name}"
        with self.show.bar("in S3, by the committed offsets", len(self.flights), "records") as advance:

            def over() -> bool:
                advance(sum(self.topics.committed(group, self.servers.topic).values()))
                return is_so()

            wait_until(over, "objects", seconds=_PATIENCE_S, unless=self._failure)

    def _has_read_all(self) -> bool:
        """Whether every partition is read to its end, according to the driver's report."""
        try:
            pod = json.loads(self._kubectl("get", "pod", self.driver, "--output", "json"))
            token = pod["metadata"]["annotations"][REPORT_TOKEN_ANNOTATION]
            address = f"/api/v1/namespaces/{DATA}/pods/{self.driver}:{REPORT_PORT}/proxy/report?token={token}"
            found = Report.model_validate_json(self.kube.run("get", "--raw", address))
        except (ServerFailedError, ValidationError):
            return False  # between two drivers
        return bool(found.partitions) and all(each.next == each.end for each in found.partitions)

    def _failure(self) -> str | None:
        """The message of the condition Stalled, if user action is required."""
        found = json.loads(self._kubectl("get", "s3sink", self.name, "--output", "json"))
        conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", ())}
        stalled = conditions.get("Stalled", {})
        return stalled.get("message") if stalled.get("status") == "True" else None

    def _uid(self) -> str | None:
        found = self._kubectl("get", "pod", self.driver, "--ignore-not-found", "--output", "json")
        return json.loads(found)["metadata"]["uid"] if found else None

    def _tell_pods(self) -> None:
        for line in self._kubectl("get", "pods", "--sort-by=.metadata.creationTimestamp").splitlines():
            self.show.say(line)

    def _apply(self, document: dict[str, Any]) -> None:
        self.kube.run("apply", "--server-side", "--namespace", DATA, "--filename", "-", given=json.dumps(document))

    def _kubectl(self, *words: str) -> str:
        return self.kube.run(*words, "--namespace", DATA)


_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def _image(key: str, name: str) -> list[str]:
    repository, colon, tag = name.rpartition(":")
    return ["--set", f"{key}.repository={repository if colon else name}", "--set", f"{key}.tag={tag if colon else ''}"]


if __name__ == "__main__":
    sys.exit(main())
