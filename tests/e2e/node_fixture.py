"""A real node with servers beside it, and a sink on it as its user sees it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from devtools import bucket_listing
from devtools.kafka import KafkaBroker
from devtools.kube.build import helm_program
from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.node import NodeCluster
from devtools.processes import ServerFailedError, wait_until
from devtools.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Record, Topics
from s3sink_operator import names
from tests.support.operator_fixture import is_ready

RELEASE, NAMESPACE = "s3sink", "s3sink-system"
CHART = Path(__file__).resolve().parents[2] / "charts" / "s3sink-operator"
STORE = "store"
LANES = 10
# A driver is Ready after ten seconds on an idle machine; what is shared with other work takes its time.
_SECONDS = 180.0


@dataclass
class Site:
    """The node, with the operator on it, and the servers of this machine."""

    cluster: NodeCluster
    kafka: KafkaBroker
    topics: Topics
    s3: S3Server

    @cached_property
    def kubeconfig(self) -> Path:
        return self.cluster.kubeconfig()

    def kubectl(self, *arguments: str | Path, text: str | None = None, check: bool = False) -> str:
        """Runs kubectl with `text` as its input and gives what it says; with `check`, a failure is an error."""
        command = [self.cluster.programs.component("kubectl"), *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not (check and done.returncode), f"kubectl {arguments}: {done.stderr}"
        return done.stdout + done.stderr

    def helm(self, *words: str | Path) -> str:
        """Runs helm and gives its output; `ServerFailedError` when it fails."""
        command = [str(word) for word in (helm_program(), *words)]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerFailedError(f"helm {words[0]} failed: {done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def upgraded(self, *values: str) -> Iterator[None]:
        """The release with these further values, as `helm upgrade`; rolled back at the end, as `helm rollback`."""
        here, wait = ("--namespace", NAMESPACE), ("--wait", "--timeout=90s")
        sets = [word for value in values for word in ("--set", value)]
        revision = json.loads(self.helm("history", RELEASE, *here, "--max=1", "-o", "json"))[0]["revision"]
        try:
            self.helm("upgrade", RELEASE, CHART, *here, "--reuse-values", *sets, *wait)
            yield
        finally:
            self.helm("rollback", RELEASE, str(revision), *here, *wait)

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace under the restricted profile; deleted at the end, with the sinks in it.

        Drivers ask for a processor each, of which the node has few, so the block ends when this one's are gone.
        """
        name = f"sinks-{uuid.uuid4().hex[:8]}"
        kube = self.restricted(name)
        yield name
        if kube.find("Namespace", name) is None:
            return
        kube.delete("Namespace", name)

        def is_empty() -> bool:
            pods = kube.items("Pod")
            for pod in pods:
                with contextlib.suppress(ApiError):
                    kube.delete("Pod", pod["metadata"]["name"], grace_s=1)
            return not pods

        wait_until(is_empty, f"pods of {name} gone", seconds=60)

    def restricted(self, name: str) -> Kube:
        """A new namespace in which the restricted profile is enforced."""
        kube = self.cluster.client()
        labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        return kube.within(name)


@dataclass
class PodSink:
    """The sink `name` of a namespace, with a topic and a bucket of its own, run by the operator in real pods.

    `sections` of its spec are merged into the usual ones; `settings` are those that are no sections.
    """

    site: Site
    namespace: str
    folder: Path
    name: str = "flights"
    partitions: int = 2
    sections: Json = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    produced: int = 0
    said: str = ""

    def __post_init__(self) -> None:
        self.bucket = f"{self.namespace}-{self.name}"
        self.topic = self.bucket
        self.kube = self.site.cluster.client().within(self.namespace)
        self.site.topics.create(self.topic, partitions=self.partitions)
        self.site.s3.client().create_bucket(Bucket=self.bucket)

    @property
    def driver_name(self) -> str:
        return names.driver_pod_name(self.name)

    @property
    def manifest(self) -> Json:
        sections: Json = {
            "s3": {"credentials": {"secret": STORE}, "partSize": "5Mi"},
            "rounds": {"maxDelay": "200ms", "minBytes": 0},
            "rotation": {"flushSize": 1000, "maxOpenTime": "1s"},
            "executor": {"mode": "Local"},
        }
        for name, section in self.sections.items():
            sections[name] = {**sections.get(name, {}), **section}
        spec = local_spec(
            bootstrap=self.site.kafka.bootstrap,
            topics=[self.topic],
            endpoint=self.site.s3.endpoint,
            bucket=self.bucket,
            **sections,
        )
        return manifest(self.name, spec | self.settings, namespace=self.namespace)

    def apply(self) -> None:
        """As a user does it: the Secret with the keys of the store, and the sink; `said` is what kubectl says."""
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        head = {"name": STORE, "namespace": self.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": head, "stringData": keys}
        self.said = self.site.kubectl("apply", "-f", "-", text=yaml.safe_dump_all([secret, self.manifest]), check=True)

    def edit(self, **spec: Any) -> None:
        """Changes the spec of the sink that is there."""
        self.kube.patch("S3Sink", self.name, {"spec": spec})

    def produce(self, count: int, *, value_bytes: int = 100, partitions: int | None = None) -> None:
        """`count` more records for each partition, or for the first `partitions`."""
        written = partitions or self.partitions
        every = (self._records(partition, count, value_bytes) for partition in range(written))
        self.site.topics.produce(self.topic, itertools.chain.from_iterable(every))
        self.produced += count * written

    def _records(self, partition: int, count: int, value_bytes: int) -> Iterable[Record]:
        for number in range(count):
            at = self.produced + number
            text = {"partition": partition, "number": at, "lane": at % LANES, "pad": "x" * value_bytes}
            yield Record(value=json.dumps(text).encode(), partition=partition)

    def scale(self, executors: int) -> None:
        """As `kubectl scale`."""
        what = ["scale", f"s3sink/{self.name}", f"--replicas={executors}", "--namespace", self.namespace]
        self.site.kubectl(*what, check=True)

    @property
    def sink(self) -> Json:
        return self.kube.get("S3Sink", self.name)

    @property
    def driver(self) -> Json:
        return self.kube.get("Pod", self.driver_name)

    def executors(self) -> list[Json]:
        """The executor pods that are there."""
        labels = f"{names.SINK_LABEL}={self.name},{names.COMPONENT_LABEL}={names.Component.EXECUTOR.value}"
        return self.kube.items("Pod", labels=labels)

    def wait(self, is_so: Callable[[Json], Any], what: str, *, seconds: float = _SECONDS) -> Json:
        """The sink as soon as it `is_so`; the error contains its pod, its log, its status, and how drivers ended."""
        try:
            return self.kube.wait("S3Sink", self.name, is_so, seconds=seconds, what=what)
        except ServerFailedError as error:
            pod = self.kube.find("Pod", self.driver_name) or {}
            log = self.site.kubectl("logs", "--namespace", self.namespace, self.driver_name, "--tail=30")
            status = self.sink.get("status", {})
            parts = [
                json.dumps(pod.get("status")),
                log,
                json.dumps(status),
                json.dumps(status.get("attempts"), indent=1),
            ]
            raise AssertionError("\n".join([str(error), *parts, str(error)])) from error

    def wait_ready(self) -> Json:
        return self.wait(is_ready, "Ready")

    def wait_ready_again(self, before: Json) -> Json:
        """The driver pod that follows `before`, when the sink is Ready with it."""
        uid = before["metadata"]["uid"]

        def is_new(sink: Json) -> bool:
            pod = self.kube.find("Pod", self.driver_name)
            return pod is not None and pod["metadata"]["uid"] != uid and is_ready(sink)

        self.wait(is_new, "Ready with the next driver")
        return self.driver

    def last_ended(self) -> Json:
        """The last ended attempt in the status."""
        ended = [dict(each) for each in self.sink["status"]["attempts"] if "endTime" in each]
        return max(ended, key=lambda each: int(each["number"]))

    def wait_arrived(self, folder: str = "topics") -> None:
        """Returns when every record that was produced is in an object below `folder`; none may be there twice."""
        wait_until(lambda: self._arrived(folder) >= self.produced, f"{self.produced} records", seconds=_SECONDS)

    def uploads(self) -> dict[str, str]:
        """The uploads to the bucket that are open, by their ids."""
        return bucket_listing.uploads(self.site.s3.client(), self.bucket)

    def _arrived(self, folder: str) -> int:
        found = self.records(folder)
        assert len(found) == len(set(found)), f"doubled: {[each for each in found if found.count(each) > 1][:5]}"
        return len(found)

    def records(self, folder: str = "topics") -> list[tuple[int, int]]:
        """The records of all objects that can be seen below the topics' `folder`, as partition and number."""
        client = self.site.s3.client()
        keys = bucket_listing.objects(client, self.bucket, f"{folder}/{self.topic}/")
        contents = (bucket_listing.body(client, self.bucket, key) for key in keys)
        lines = (json.loads(line) for content in contents for line in content.splitlines())
        return [(line["partition"], line["number"]) for line in lines]

    def verify(self) -> str:
        """`s3sink verify`, on this machine: every committed record in exactly one object."""
        document = self.manifest
        # Whose sink it is says the cluster; keys come from the environment here.
        del document["spec"]["s3"]["credentials"]
        return SinkCommand(self.folder, document).must("verify")


class Shared:
    """One running sink for tests one after the other: the same as long as it is as good as new, else another."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site = site
        self._folder = folder
        self._place = contextlib.ExitStack()
        self._sink: PodSink | None = None
        self._spec: Json = {}

    def sink(self) -> PodSink:
        """A sink that is Ready without a failure behind it, as it was applied, with every record copied."""
        if self._sink is None or not self._is_as_new(self._sink):
            self.end()
            self._sink = PodSink(self._site, self._place.enter_context(self._site.namespace()), self._folder)
            self._sink.produce(1500)
            self._sink.apply()
            self._spec = self._sink.wait_ready()["spec"]
        self._sink.wait_arrived()
        return self._sink

    def end(self) -> None:
        """Nothing of it is left."""
        self._sink = None
        self._place.close()

    def _is_as_new(self, sink: PodSink) -> bool:
        found = sink.kube.find("S3Sink", sink.name)
        if found is None or found["spec"] != self._spec or not is_ready(found):
            return False
        return not {"retry", "offsetReset"} & found["status"].keys() and "minimum" not in found["status"].get(
            "memory", {}
        )
