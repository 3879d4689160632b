"""A fixture that runs a sink on a real S3 server: a bucket, a consumer group in a file, and queries on both."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devtools.bucket_listing import decompressed
from devtools.faults.s3_proxy import FaultProxy
from devtools.processes import wait_until
from devtools.s3 import credentials_secret, s3_client
from sink_job.api.errors import SinkError
from sink_job.api.report import ResetReport
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess
from sink_job.maintenance.discard_open import DiscardReport, discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import S3Client, S3Settings, connect
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.forked import forkserver
from tests.support.synthetic_log import (
    CLOCK_MS,
    FileConsumerGroup,
    SyntheticLog,
    loopback_settings,
    new_coordinator,
    sink_of_text,
)


def manifest(bucket: str, endpoint: str, **given: Any) -> str:
    """A manifest of topic `log` with JSON lines; `given` are settings by their snake_case names."""
    rotation = {"flushSize": given.get("flush_size"), "maxBytes": given.get("max_bytes"), "scope": given.get("scope")}
    rounds = {"maxRecords": given.get("max_records"), "minBytes": 0, "maxDelay": "1ms"}
    spec = {
        "kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group"},
        "format": {"compression": {"codec": given.get("compression", "None")}},
        "rotation": {name: value for name, value in rotation.items() if value is not None},
        "rounds": {name: value for name, value in rounds.items() if value is not None},
        "s3": {
            "bucket": bucket,
            "endpoint": endpoint,
            "region": "us-east-1",
            "pathStyle": True,
            "partSize": given.get("part_size", "5Mi"),
            "equalParts": given.get("equal_parts", False),
            **({"ledger": given["ledger"]} if given.get("ledger") else {}),
        },
        "errors": given.get("errors", {}),
        **given.get("spec", {}),
    }
    if given.get("paths"):
        spec["partitioner"] = {"type": "Field", "fields": ["kind"]}
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": given.get("name", "log")}}
    return json.dumps({**head, "spec": spec}, ensure_ascii=False)  # YAML too, and written and read faster


@dataclass(frozen=True)
class SinkFixture:
    """A bucket and a consumer group; drivers and commands of sink `log` run on them."""

    folder: Path
    settings: S3Settings

    @classmethod
    def new(cls, endpoint: str, folder: Path) -> SinkFixture:
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        s3_client(endpoint).create_bucket(Bucket=bucket)
        secret = folder / "secret"
        secret.mkdir()
        return cls(folder, loopback_settings(endpoint, bucket, credentials_secret(secret)))

    def with_ledger_in(self, bucket: str, prefix: str | None = None, keys: Path | None = None) -> SinkFixture:
        """The same sink with the ledger in this bucket. `keys`: directory with the keys of a user."""
        ledger = {"bucket": bucket, "prefix": prefix, "credentials": None if keys is None else {"secret": "ledger"}}
        spec = sink_of_text(manifest(self.bucket, self.endpoint, flush_size=1, ledger=ledger)).spec
        of_spec = S3Settings.of(spec, {} if keys is None else {"ledger": keys}).ledger
        assert of_spec is not None
        own = replace(of_spec.settings, retry=self.settings.retry, endpoint=self.endpoint)
        if keys is None:
            own = replace(own, credentials_dir=self.settings.credentials_dir)
        return replace(self, settings=replace(self.settings, ledger=replace(of_spec, settings=own)))

    def with_other_ledger_bucket(self, prefix: str | None = None) -> SinkFixture:
        """The same sink with the ledger in a new bucket."""
        bucket = f"l-{uuid.uuid4().hex[:12]}"
        s3_client(self.endpoint).create_bucket(Bucket=bucket)
        return self.with_ledger_in(bucket, prefix)

    def manifest(self, **given: Any) -> str:
        """The manifest of the sink with these settings."""
        place = self.settings.ledger
        if place is not None:
            prefix = place.front.removesuffix(f"{self.bucket}/").rstrip("/") or None
            given = {"ledger": {"bucket": place.settings.bucket, "prefix": prefix}, **given}
        return manifest(self.bucket, self.endpoint, **given)

    def sibling(self) -> SinkFixture:
        """Another bucket on the same server."""
        folder = self.folder / "sibling"
        folder.mkdir()
        return SinkFixture.new(self.endpoint, folder)

    def through(self, proxy: FaultProxy) -> SinkFixture:
        """The same bucket behind the proxy."""
        ledger = self.settings.ledger
        if ledger is not None:
            ledger = replace(ledger, settings=replace(ledger.settings, endpoint=proxy.endpoint))
        return replace(self, settings=replace(self.settings, endpoint=proxy.endpoint, ledger=ledger))

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

    def driver(self, log: SyntheticLog, goal: StopCondition, **given: Any) -> Coordinator:
        context = given.pop("context", None)
        clock = given.pop("clock", None)
        text = self.manifest(**given)
        return new_coordinator(
            text, log, self.settings, self.folder / "group.json", goal=goal, context=context, clock=clock
        )

    def run(self, log: SyntheticLog, goal: StopCondition, **given: Any) -> None:
        self.driver(log, goal, **given).run()

    def ledger_access(self, **given: Any) -> LedgerAccess:
        """The access of a command to this sink's ledger."""
        sink = sink_of_text(self.manifest(**{"flush_size": 10, **given}))
        root = ledger_root(self.s3, sink.spec.s3.topics_dir, sink.sink_id)
        owner = Owner("function", sink.namespace, sink.name, sink.sink_id)
        clock, store_clock = given.get("clock") or (lambda: CLOCK_MS), given.get("store_clock") or (lambda: None)
        attempt = uuid.uuid4().hex
        return LedgerAccess(s3=self.s3, root=root, owner=owner, attempt=attempt, clock=clock, store_clock=store_clock)

    def discard(self, **given: Any) -> DiscardReport:
        """`s3sink discard-open`."""
        return discard_open(self.ledger_access(**given))

    def reset(self, log: SyntheticLog, to: str, *, on_existing: str = "Fail", **given: Any) -> ResetReport:
        """`s3sink reset-offsets`; `at` are offsets by partition, `timestamp` is in ms."""
        at = [{"topic": log.topic, "partition": p, "offset": o} for p, o in given.pop("at", {}).items()]
        reset = {"nonce": given.pop("nonce", uuid.uuid4().hex), "to": to, "onExisting": on_existing}
        reset |= {"partitions": at} if at else {}
        reset |= {"timestamp": given.pop("timestamp")} if "timestamp" in given else {}
        request = OffsetResetSpec.model_validate(reset)
        sink = sink_of_text(self.manifest(**{"flush_size": 10, **given}))
        admin = FileConsumerGroup(log, self.folder / "group.json")
        return OffsetResetter(sink, self.ledger_access(**given), admin, request).run()

    def verify(self, log: SyntheticLog, **given: Any) -> list[PartitionResult]:
        """`s3sink verify`."""
        sink = sink_of_text(self.manifest(**{"flush_size": 10, **given}))
        return collect_evidence(sink, self.s3, FileConsumerGroup(log, self.folder / "group.json")).results()

    def start(self, log: SyntheticLog, goal: StopCondition, **given: Any) -> ForkedDriver:
        """Starts `run` in its own process, which a test can pause, resume and kill."""
        return ForkedDriver(self, log, goal, given)

    # -- queries -----------------------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """The visible objects."""
        return [listed.key for listed in self.s3.list("") if "/_s3sink/" not in listed.key]

    def internal_keys(self) -> list[str]:
        """The keys in the folders of ledgers, of both buckets."""
        clients = dict.fromkeys((self.s3, self.s3.of_ledger)) if self._has_two_buckets else (self.s3,)
        return [listed.key for client in clients for listed in client.list("") if "/_s3sink/" in listed.key]

    @property
    def _has_two_buckets(self) -> bool:
        return self.s3.of_ledger.bucket != self.bucket

    def content(self, key: str) -> bytes:
        return self.s3.get(key)

    def contents(self) -> dict[str, bytes]:
        return {key: self.content(key) for key in self.keys()}

    def offsets(self, key: str) -> list[int]:
        """The offsets that an object's lines hold."""
        lines = decompressed(self.content(key), key).splitlines()
        return [json.loads(line)["offset"] for line in lines]

    def etags(self) -> dict[str, str]:
        return {listed.key: listed.etag for listed in self.s3.list("") if "/_s3sink/" not in listed.key}

    def group(self) -> dict[str, int]:
        path = self.folder / "group.json"
        stored: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        return stored

    def records(self) -> list[int]:
        """The numbers of the records in the ledger."""
        return [int(key.rsplit("/", 1)[1][:20]) for key in self.internal_keys() if "/ledger/" in key]

    def orphans(self) -> list[str]:
        """The keys of unfinished uploads, staging objects and probe files."""
        uploads = [upload.key for upload in self.s3.list_uploads("")]
        if self._has_two_buckets:
            uploads += [upload.key for upload in self.s3.of_ledger.list_uploads("")]
        return uploads + [key for key in self.internal_keys() if "/staging/" in key or "/probe/" in key]

    def orphans_after(self, goal: StopCondition, log: SyntheticLog, given: Mapping[str, Any]) -> list[str]:
        """The orphans after the clean-up of another driver.

        The store's clock has a resolution of one second. A driver therefore leaves uploads that a crashed driver
        started in the second of its own claim to the next driver.
        """
        if self.orphans():
            started = int(time.time())
            wait_until(lambda: int(time.time()) > started, "the store's next second", seconds=5)
            self.run(log, goal, **given)
        return self.orphans()

    # -- external changes --------------------------------------------------------------------------------------------

    def set_group(self, offsets: dict[str, int]) -> None:
        (self.folder / "group.json").write_text(json.dumps(offsets))

    def put(self, key: str, body: bytes) -> None:
        self.s3.put(key, body)

    def abort_uploads_of(self, key: str) -> None:
        for upload in list(self.s3.list_uploads(key)):
            self.s3.abort(upload.key, upload.upload_id)

    def delete_staging(self) -> None:
        self.s3.delete([key for key in self.internal_keys() if "/staging/" in key])


class TickingClock:
    """A clock that advances by a second with each read."""

    def __init__(self) -> None:
        self._now = CLOCK_MS

    def __call__(self) -> int:
        self._now += 1_000
        return self._now


class ForkedDriver:
    """A driver in a process that is forked from one with all imports; it exits as `s3sink run` does."""

    def __init__(
        self, sink_fixture: SinkFixture, log: SyntheticLog, goal: StopCondition, given: Mapping[str, Any]
    ) -> None:
        self._message = sink_fixture.folder / f"message-{uuid.uuid4().hex[:8]}"
        self._process = forkserver().Process(
            target=_run, args=(self._message, sink_fixture, log, goal, given), daemon=True
        )
        self._process.start()

    @property
    def message(self) -> str:
        """The error message at the end; empty after a success."""
        return self._message.read_text() if self._message.exists() else ""

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


def _run(
    message: Path, sink_fixture: SinkFixture, log: SyntheticLog, goal: StopCondition, given: Mapping[str, Any]
) -> None:
    try:
        sink_fixture.run(log, goal, **given)
    except SinkError as error:
        message.write_text(f"{error.reason}: {error}")
        sys.exit(error.exit_code)
