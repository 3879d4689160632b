"""Somewhere to run a sink: a bucket, a consumer group, and what to ask of them afterwards."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from devtools.faults.s3_proxy import FaultProxy
from devtools.processes import wait_until
from devtools.s3 import credentials_secret, s3_client
from sink_job.api.errors import SinkError
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.report import ResetReport
from sink_job.api.spec import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.ledger.ownership import Owner, ledger_root
from sink_job.ledger.session import LedgerAccess
from sink_job.maintenance.discard_open import DiscardReport, discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import S3Client, S3Settings, connect
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.synthetic_log import CLOCK_MS, FileGroup, FunctionLog, driver, quick


def manifest(bucket: str, endpoint: str, **given: Any) -> str:
    """A manifest of topic `log` with JSON lines; `given` are a few settings by their snake_case names."""
    rotation = {"flushSize": given.get("flush_size"), "maxBytes": given.get("max_bytes"), "scope": given.get("scope")}
    rounds = {"maxRecords": given.get("max_records"), "minBytes": 0, "maxDelay": "1ms"}
    spec = {
        "kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group"},
        "format": {"compression": given.get("compression", "None")},
        "rotation": {name: value for name, value in rotation.items() if value is not None},
        "rounds": {name: value for name, value in rounds.items() if value is not None},
        "s3": {
            "bucket": bucket,
            "endpoint": endpoint,
            "region": "us-east-1",
            "pathStyle": True,
            "partSize": given.get("part_size", "5Mi"),
        },
        "errors": given.get("errors", {}),
        **given.get("spec", {}),
    }
    if given.get("paths"):
        spec["partitioner"] = {"type": "Field", "fields": ["kind"]}
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": given.get("name", "log")}}
    return yaml.safe_dump({**head, "spec": spec})


@dataclass(frozen=True)
class Place:
    folder: Path
    settings: S3Settings

    @classmethod
    def new(cls, endpoint: str, folder: Path) -> Place:
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        s3_client(endpoint).create_bucket(Bucket=bucket)
        secret = folder / "secret"
        secret.mkdir()
        return cls(folder, quick(endpoint, bucket, credentials_secret(secret)))

    def sibling(self) -> Place:
        """Another place on the same server."""
        folder = self.folder / "sibling"
        folder.mkdir()
        return Place.new(self.endpoint, folder)

    def through(self, proxy: FaultProxy) -> Place:
        """The same place, reached through the proxy."""
        return replace(self, settings=replace(self.settings, endpoint=proxy.endpoint))

    @property
    def endpoint(self) -> str:
        assert self.settings.endpoint is not None
        return self.settings.endpoint

    @property
    def bucket(self) -> str:
        return self.settings.bucket

    @property
    def s3(self) -> S3Client:
        return connect(self.settings)

    # -- running -----------------------------------------------------------------------------------------------------

    def driver(self, log: FunctionLog, goal: StopCondition, **given: Any) -> Coordinator:
        world = given.pop("world", None)
        clock = given.pop("clock", None)
        text = manifest(self.bucket, self.endpoint, **given)
        return driver(text, log, self.settings, self.folder / "group.json", goal=goal, world=world, clock=clock)

    def run(self, log: FunctionLog, goal: StopCondition, **given: Any) -> None:
        self.driver(log, goal, **given).run()

    def hands(self, **given: Any) -> LedgerAccess:
        """What a command takes this place's ledger with."""
        sink = load_sink(manifest(self.bucket, self.endpoint, **{"flush_size": 10, **given}))
        root = ledger_root(sink.spec.s3.topics_dir, sink.sink_id)
        owner = Owner("function", sink.namespace, sink.name, sink.sink_id)
        clock, store_clock = given.get("clock") or (lambda: CLOCK_MS), given.get("store_clock") or (lambda: None)
        attempt = uuid.uuid4().hex
        return LedgerAccess(s3=self.s3, root=root, owner=owner, attempt=attempt, clock=clock, store_clock=store_clock)

    def discard(self, **given: Any) -> DiscardReport:
        """`s3sink discard-open`."""
        return discard_open(self.hands(**given))

    def reset(self, log: FunctionLog, to: str, *, on_existing: str = "Fail", **given: Any) -> ResetReport:
        """`s3sink reset-offsets`; `at` are offsets by partition, `timestamp` is in ms."""
        at = [{"topic": log.topic, "partition": p, "offset": o} for p, o in given.pop("at", {}).items()]
        reset = {"nonce": given.pop("nonce", uuid.uuid4().hex), "to": to, "onExisting": on_existing}
        reset |= {"partitions": at} if at else {}
        reset |= {"timestamp": given.pop("timestamp")} if "timestamp" in given else {}
        request = OffsetResetSpec.model_validate(reset)
        sink = load_sink(manifest(self.bucket, self.endpoint, **{"flush_size": 10, **given}))
        admin = FileGroup(log, self.folder / "group.json")
        return OffsetResetter(sink, self.hands(**given), admin, request).run()

    def verify(self, log: FunctionLog, **given: Any) -> list[PartitionResult]:
        """`s3sink verify`."""
        sink = load_sink(manifest(self.bucket, self.endpoint, **{"flush_size": 10, **given}))
        return collect_evidence(sink, self.s3, FileGroup(log, self.folder / "group.json")).results()

    def start(self, log: FunctionLog, goal: StopCondition, **given: Any) -> Forked:
        """The same in a process of its own, which a test can stop, go on with and kill."""
        return Forked(self, log, goal, given)

    # -- looking -----------------------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """The visible objects."""
        return [listed.key for listed in self.s3.list("") if "/_s3sink/" not in listed.key]

    def body(self, key: str) -> bytes:
        return self.s3.get(key)

    def bodies(self) -> dict[str, bytes]:
        return {key: self.body(key) for key in self.keys()}

    def offsets(self, key: str) -> list[int]:
        """The offsets that an object's lines hold."""
        body = self.body(key)
        lines = (gzip.decompress(body) if key.endswith(".gz") else body).splitlines()
        return [json.loads(line)["offset"] for line in lines]

    def etags(self) -> dict[str, str]:
        return {listed.key: listed.etag for listed in self.s3.list("") if "/_s3sink/" not in listed.key}

    def group(self) -> dict[str, int]:
        path = self.folder / "group.json"
        stored: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        return stored

    def records(self) -> list[int]:
        """The numbers of the records that the ledger still holds."""
        return [int(listed.key.rsplit("/", 1)[1][:20]) for listed in self.s3.list("") if "/ledger/" in listed.key]

    def litter(self) -> list[str]:
        """Unfinished uploads, staged leftovers and try-outs."""
        uploads = [upload.key for upload in self.s3.list_uploads("")]
        kept = [listed.key for listed in self.s3.list("")]
        return uploads + [key for key in kept if "/staging/" in key or "/probe/" in key]

    def litter_after(self, goal: StopCondition, log: FunctionLog, given: Mapping[str, Any]) -> list[str]:
        """What is left when a next driver has cleaned up too: a store's clock counts whole seconds, so what a crashed
        driver began in the very second of its successor's claim is left to the one after it."""
        if self.litter():
            begun = int(time.time())
            wait_until(lambda: int(time.time()) > begun, "the store's next second", seconds=5)
            self.run(log, goal, **given)
        return self.litter()

    # -- meddling ----------------------------------------------------------------------------------------------------

    def set_group(self, offsets: dict[str, int]) -> None:
        (self.folder / "group.json").write_text(json.dumps(offsets))

    def put(self, key: str, body: bytes) -> None:
        self.s3.put(key, body)

    def abort_uploads_of(self, key: str) -> None:
        for upload in list(self.s3.list_uploads(key)):
            self.s3.abort(upload.key, upload.upload_id)

    def delete_staging(self) -> None:
        self.s3.delete([listed.key for listed in self.s3.list("") if "/staging/" in listed.key])


class Ticking:
    """A clock that goes on by a second with each look."""

    def __init__(self) -> None:
        self._now = CLOCK_MS

    def __call__(self) -> int:
        self._now += 1_000
        return self._now


class Forked:
    """A driver in a process that was forked from one which has imported everything; it ends as `s3sink run` would."""

    def __init__(self, place: Place, log: FunctionLog, goal: StopCondition, given: Mapping[str, Any]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._told = place.folder / f"told-{uuid.uuid4().hex[:8]}"
        self._process = context.Process(target=_run, args=(self._told, place, log, goal, given), daemon=True)
        self._process.start()

    @property
    def told(self) -> str:
        """What the user reads at the end; nothing when all went well."""
        return self._told.read_text() if self._told.exists() else ""

    def wait(self, seconds: float = 60) -> int | None:
        """The exit code; None when it still runs after `seconds`."""
        self._process.join(seconds)
        return self._process.exitcode

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _run(told: Path, place: Place, log: FunctionLog, goal: StopCondition, given: Mapping[str, Any]) -> None:
    try:
        place.run(log, goal, **given)
    except SinkError as error:
        told.write_text(f"{error.reason}: {error}")
        sys.exit(error.exit_code)
