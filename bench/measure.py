"""Runs the measured processes and computes results."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO, Any

from bench.data import PARTITIONS, Case
from bench.resource_sampler import Peaks, Sample, Sampler, spent
from bench.servers import BUCKET
from devtools.kafka import KafkaBroker
from devtools.processes import kill_session
from devtools.s3 import S3Server, credentials_environment
from devtools.sink_process import local_spec, manifest
from devtools.sink_process import sink_command as sink_command

Result = dict[str, Any]
SERVERS = ("broker", "s3")


def median_of(results: Sequence[Result], name: str) -> float:
    """The median of a figure of several turns."""
    return median(float(each[name]) for each in results)


class Bench:
    """A broker and an S3 server for measurements, with `cores` concurrent tasks."""

    def __init__(self, broker: KafkaBroker, s3: S3Server, target: str, *, cores: int) -> None:
        self.broker = broker
        self.s3 = s3
        self.target = target
        self.cores = cores

    def manifest(self, name: str, case: Case, sections: Mapping[str, Any], *, number: int = 0) -> dict[str, Any]:
        """A sink over the topic of `case`, with its own name, folder and consumer group.

        The broker outlives a run, and so do the committed offsets of earlier groups.
        """
        each = f"{name}-{number}"
        kafka = {"groupId": f"{each}-{uuid.uuid4().hex[:8]}", **sections.get("kafka", {})}
        spec = local_spec(
            bootstrap=self.broker.bootstrap,
            topics=[case.topic],
            endpoint=self.s3.endpoint,
            bucket=BUCKET,
            **{**sections, "kafka": kafka, "s3": {"topicsDir": each, **sections.get("s3", {})}},
        )
        return manifest(each, spec)

    def servers(self) -> dict[str, int]:
        assert self.broker.process
        assert self.s3.process
        return {"broker": self.broker.process.pid, "s3": self.s3.process.pid}

    @contextlib.contextmanager
    def passes(
        self, folder: Path, made_for: Mapping[str, Any], *, executor_memory: int | None = None, **conf: str
    ) -> Iterator[PassRunner]:
        """A process of `bench.spark_pass`. `executor_memory`: with an executor for each of `cores`, of these bytes."""
        with (folder / "passes.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.spark_pass"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **credentials_environment()},
                start_new_session=True,
            )
            try:
                with Sampler(process.pid, self.servers()) as sampler:
                    runner = PassRunner(process, sampler, folder / "passes.log")
                    session = {"cores": self.cores, "executor_memory": executor_memory, "conf": conf}
                    runner.begin({"manifest": made_for, **session})
                    yield runner
            finally:
                kill_session(process.pid)
                process.wait()

    def command(self, folder: Path, case: Case, document: Mapping[str, Any]) -> Result:
        """`s3sink run --until-caught-up --publish-open`, from the start of the process to its end."""
        with sink_command(folder, document) as sink:
            started = time.monotonic()
            process = sink.start("run", "--until-caught-up", "--publish-open", "--cores", str(self.cores))
            with Sampler(process.pid, self.servers()) as sampler:
                before = sampler.sample()
                code = process.wait(900)
                seconds = time.monotonic() - started
                result = _result(case, seconds, before, sampler.sample(), sampler.take_peaks())
            if code:
                raise RuntimeError(f"s3sink run exited with {code}:\n{process.log}")
        return {"stage": "command", "pass": "cold", "target": self.target, **result}


class PassRunner:
    """The client of a `bench.spark_pass` process."""

    def __init__(self, process: subprocess.Popen[str], sampler: Sampler, log: Path) -> None:
        self._process = process
        self._sampler = sampler
        self._log = log

    def begin(self, settings: Mapping[str, Any]) -> None:
        self._say(settings)
        self._hear("ready")

    def run(self, case: Case, stage: str, **what: Any) -> Result:
        """Runs one pass; returns its measurements."""
        self._say({"stage": stage, "topic": case.topic, "records": case.records, "partitions": PARTITIONS, **what})
        self._hear("begin")
        self._sampler.take_peaks()
        before = self._sampler.sample()
        self._say({})
        ended = self._hear("end")
        result = _result(case, ended.pop("seconds"), before, self._sampler.sample(), self._sampler.take_peaks())
        read = ended.get("records_read", ended.get("records_written", case.records))
        if read != case.records:
            raise RuntimeError(f"{stage}: read {read} records, expected {case.records}")
        return {"stage": stage, **result, **_of_sink(case, ended)}

    @property
    def pid(self) -> int:
        return self._process.pid

    def _say(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def _hear(self, event: str) -> dict[str, Any]:
        assert self._process.stdout
        said: IO[str] = self._process.stdout
        for line in said:
            if line.startswith("{"):
                heard: dict[str, Any] = json.loads(line)
                if heard.pop("event") == event:
                    return heard
        raise RuntimeError(f"bench.spark_pass exited:\n{self._log.read_text()[-3000:]}")


def _result(case: Case, seconds: float, before: Sample, after: Sample, peaks: Peaks) -> Result:
    cpu = spent(before, after)
    own = sum(each for role, each in cpu.items() if role not in SERVERS)
    gb = case.bytes / 1e9
    return {
        "case": case.name,
        "records": case.records,
        "bytes": case.bytes,
        "seconds": round(seconds, 2),
        "records_per_s": round(case.records / seconds),
        "mb_per_s": round(case.bytes / 1e6 / seconds, 1),
        "mb_per_cpu_s": round(case.bytes / 1e6 / own, 1) if own else None,
        "cpu_s": cpu,
        "cpu_s_per_gb": {role: round(each / gb, 2) for role, each in sorted(cpu.items())},
        "own_cpu_s_per_gb": round(own / gb, 2),
        "peak_mb": {role: round(size / 1e6) for role, size in sorted(peaks.rss.items())},
        "peak_tree_mb": {"rss": round(peaks.tree_rss / 1e6), "pss": round(peaks.tree_pss / 1e6)},
    }


def _of_sink(case: Case, ended: Mapping[str, Any]) -> Result:
    if "requests" not in ended:
        return {}
    asked: Mapping[str, int] = ended["requests"]
    rounds: Sequence[tuple[int, int]] = ended["rounds_ms"]
    return {
        "requests": dict(sorted(asked.items())),
        "requests_per_gb": round(sum(asked.values()) / (case.bytes / 1e9)),
        "rounds_ms": rounds,
        "objects": ended["objects"],
        "spilled_mb": round(ended["spilled_bytes"] / 1e6),
        "buffered_mb": round(ended["buffered_bytes"] / 1e6),
        "budget_mb": round(ended["budget_bytes"] / 1e6),
    }
