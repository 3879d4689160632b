"""A sink under faults: its topic, its load, its drivers and the comparison of its objects with Kafka."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from devtools import bucket_listing
from devtools.chaos import containers
from devtools.chaos.compare import Comparison, ComparisonSettings, TopicLog
from devtools.chaos.drivers import DriverProcess, Fleet, Servers
from devtools.chaos.load import Loader, value
from devtools.chaos.registry import RegistryProxy
from devtools.chaos.registry_values import VERSIONS, VersionedValues
from devtools.chaos.scenario_plan import Cycle, ScenarioPlan
from devtools.chaos.value_forms import RegisteredForm, TypedForm, ValueForm
from devtools.processes import ServerFailedError, wait_until
from devtools.topics import Topics
from sink_job.coordinator.context import HEAD_CHECK_INTERVAL_MS

KILLED = (-9, 137)
OK, FENCED, CONFIGURATION, TRANSIENT = 0, 3, 7, 75
START_TIMEOUT_S = 240.0
"""Timeout in seconds of a driver's first round under load, on a busy machine."""
TAIL_LINES = 25
MAX_STARTS = 4
"""Maximum number of consecutive drivers that exit with 75 without progress."""


class Finding(Exception):
    """A violated expectation; `log` is the end of a driver's or command's log, if available."""

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.log = log


@dataclass(frozen=True)
class LocatedFinding:
    """A finding and its location in the plan."""

    seed: int
    scenario: int
    cycle: int
    fault: str
    what: str
    log: str


@dataclass(frozen=True)
class Registered:
    """The values of a topic with schemas in the registry, and the proxy through which drivers reach it."""

    values: VersionedValues
    proxy: RegistryProxy


class Scenario:
    """A topic, a bucket and the sink between them. `driver` is the current driver process, if any."""

    def __init__(self, servers: Servers, folder: Path, plan: ScenarioPlan, *, name: str) -> None:
        self.servers = servers
        self.plan = plan
        self.topic = f"t-{name}"
        self.bucket = f"b-{name}"
        self.partitions = plan.partitions
        self.topics = Topics(servers.broker.bootstrap)
        self.client = servers.client()
        self.registered = self._registered()
        spec = dict(plan.spec)
        if self.registered:
            form = spec["format"]
            registry = {**form["registry"], "url": [self.registered.proxy.endpoint]}
            spec["format"] = {**form, "registry": registry}
        self.fleet = Fleet(servers, folder, name=name, topic=self.topic, bucket=self.bucket, spec=spec, zone=plan.zone)
        self.fleet.memory = plan.memory
        values = self.registered.values.value if self.registered else value
        self.loader = Loader(servers.broker.bootstrap, self.topic, values)
        log = TopicLog(servers.broker.bootstrap, self.topic, self._form())
        self.comparison = Comparison(log, self.client, self.bucket, ignored=self._ignores)
        self.driver: DriverProcess | None = None
        self.kinds: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.trusts_group = True
        self._use_settings()

    def _registered(self) -> Registered | None:
        if not self.plan.has_registry:
            return None
        first_id = (self.plan.number + 1) * len(VERSIONS) * 10
        values = VersionedValues(self.plan.spec["format"]["converter"], self.topic, first_id)
        self.servers.registry.keep(values)
        return Registered(values, RegistryProxy(self.servers.registry.url).__enter__())

    def _form(self) -> ValueForm:
        if self.registered:
            return RegisteredForm(self.registered.values)
        return ValueForm() if containers.extension(self.plan.spec["format"]) is None else TypedForm()

    def with_registry(self) -> Registered:
        """Raises ValueError for a plan without a registry."""
        if self.registered is None:
            raise ValueError("the fault needs a scenario with a registry")
        return self.registered

    def open(self) -> None:
        """Creates the topic and the bucket."""
        self.client.create_bucket(Bucket=self.bucket)
        if self.plan.versioning:
            self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        self.topics.create(self.topic, partitions=self.partitions, settings={"segment.bytes": "1048576"})

    def close(self, *, keep: bool = False) -> None:
        """Ends all processes, and removes the data unless `keep` is set."""
        self.loader.close()
        self.fleet.close()
        if self.registered:
            self.registered.proxy.__exit__()
        if keep:
            return
        with contextlib.suppress(Exception):
            bucket_listing.clear(self.client, self.bucket)
        with contextlib.suppress(Exception):
            self.topics.delete(self.topic)

    # -- load --------------------------------------------------------------------------------------------------------

    def load(self, cycle: Cycle) -> None:
        """Starts the cycle's burst."""
        if cycle.burst.records:
            self.loader.begin(f"c{cycle.number}", cycle.seed, cycle.burst)
        else:
            self.loader.finish()

    # -- drivers -----------------------------------------------------------------------------------------------------

    def running_driver(self, *, progress: bool = True) -> DriverProcess:
        """The driver; with `progress` after it has stored its next record, if there is load."""
        for _ in range(MAX_STARTS):
            driver = self.driver
            if driver is not None and not driver.process.running():
                self.expect_exit(driver, {TRANSIENT})
                driver = None
            if driver is None:
                driver = self.driver = self.fleet.start()
            if not progress or self.wait_for_progress(driver):
                return driver
        raise Finding(
            f"{MAX_STARTS} consecutive drivers exited with 75", self.fleet.drivers[-1].process.last_lines(TAIL_LINES)
        )

    def wait_for_progress(self, driver: DriverProcess) -> bool:
        """Waits until the driver has stored one more record after its claim; without load, until it has stored its
        claim.

        Returns False if it exited with 75 before.
        """
        count = max(2, driver.records() + 1) if self.loader.busy else 1
        try:
            if driver.wait_for_records(count, START_TIMEOUT_S):
                return True
        except ServerFailedError as error:
            what = str(error).partition("\n")[0]
            raise Finding(f"a driver makes no progress: {what}", driver.process.last_lines(TAIL_LINES)) from None
        self.expect_exit(driver, {TRANSIENT})
        return False

    def expect_exit(self, driver: DriverProcess, codes: Collection[int], seconds: float = 90.0) -> int:
        """Waits for the driver's end and returns the exit code. Raises Finding if it is not one of `codes`."""
        try:
            code = driver.wait(seconds)
        except ServerFailedError:
            raise Finding(
                f"the driver did not end within {seconds:g} s", driver.process.last_lines(TAIL_LINES)
            ) from None
        self.fleet.exits["killed" if code in KILLED else str(code)] += 1
        driver.process.kill()
        if self.driver is driver:
            self.driver = None
        if code not in codes:
            expected = " or ".join(map(str, sorted(codes)))
            raise Finding(f"a driver exited with {code} instead of {expected}", driver.process.last_lines(TAIL_LINES))
        return code

    def kill(self, driver: DriverProcess) -> None:
        """Sends SIGKILL to the driver and all its child processes."""
        driver.process.kill()
        self.expect_exit(driver, {*KILLED, TRANSIENT})

    def expect_survival(self, driver: DriverProcess) -> None:
        """Raises Finding unless the driver runs or has exited with 75."""
        if not driver.process.running():
            self.expect_exit(driver, {TRANSIENT})

    def expect_fenced(self, driver: DriverProcess, seconds: float = 180.0 + HEAD_CHECK_INTERVAL_MS / 1000) -> None:
        """Expects the driver to exit with 3, as another driver has claimed the ledger. An idle one learns it late."""
        self.expect_exit(driver, {FENCED}, seconds)

    def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Waits until `is_so` holds, at most `seconds`; returns whether it does."""
        try:
            wait_until(is_so, "", seconds=seconds)
        except ServerFailedError:
            return False
        return True

    def edit(self, other: ScenarioPlan, compatibility: str | None = None) -> None:
        """Uses rotation and partitioner of another plan from the next start on, and this `schemaCompatibility`."""
        for section in ("rotation", "partitioner"):
            self.fleet.spec[section] = other.spec[section]
        if compatibility:
            self.fleet.spec["schemaCompatibility"] = compatibility
        self._use_settings()

    def _use_settings(self) -> None:
        self.comparison.settings.append(ComparisonSettings.of(self.fleet.spec))

    # -- comparison --------------------------------------------------------------------------------------------------

    def committed(self) -> dict[int, int]:
        """The group's offsets, read by a new client."""
        return Topics(self.servers.broker.bootstrap).committed(self.group, self.topic)

    @property
    def group(self) -> str:
        return f"s3sink-default.{self.fleet.name}"

    def compare_visible(self) -> None:
        """Compares the visible objects; the sink may be running. Raises Finding."""
        committed = self.committed() if self.trusts_group else {}
        _raise(self.comparison.compare_visible(committed, range(self.partitions)), "")

    def quiesce(self) -> None:
        """Ends the load and the driver, publishes and compares everything. Raises Finding."""
        self.loader.settle()
        if self.driver is not None:
            driver = self.driver
            driver.process.terminate(60)
            self.expect_exit(driver, {OK, TRANSIENT})
        for attempt in range(3):
            driver = self.fleet.start("--until-caught-up", "--publish-open")
            self._wait_while_it_progresses(driver)
            if self.expect_exit(driver, {OK, TRANSIENT}) == OK:
                break
            if attempt == 2:
                raise Finding("three runs until caught up exited with 75", driver.process.last_lines(TAIL_LINES))
        log = driver.process.last_lines(TAIL_LINES)
        _raise(self.comparison.compare_all(self.committed(), range(self.partitions)), log)
        uploads = bucket_listing.uploads(self.client, self.bucket)
        if uploads:
            raise Finding(f"{len(uploads)} unfinished uploads remain: {sorted(uploads.values())[:3]}", log)
        staged = [key for key in bucket_listing.objects(self.client, self.bucket, ledger=True) if "/staging/" in key]
        if staged:
            raise Finding(f"{len(staged)} staging objects remain: {staged[:3]}", log)

    def _wait_while_it_progresses(self, driver: DriverProcess) -> None:
        """Waits for the driver's end, for as long as it stores a record now and then: how long the rest of a load takes
        depends on the machine."""
        before, stored = -1, driver.records()
        while stored > before and not self.wait_until(lambda: not driver.process.running(), START_TIMEOUT_S * 2):
            before, stored = stored, driver.records()

    def verify(self) -> None:
        """Runs `s3sink verify --deep`. Raises Finding unless it passes."""
        code, output = self.fleet.command("verify", "--deep", "-o", "json", seconds=START_TIMEOUT_S * 2)
        if code == OK:
            return
        start = output.find("{\n")
        if code not in (5, 6) or start < 0:
            raise Finding(f"verify --deep exited with {code}", f"{output[:3000]}\n...\n{output[-3000:]}")
        wrong = [
            f"{p['topic']}-{p['partition']}: {each}"
            for p in json.loads(output[start : output.rindex("}") + 1])["partitions"]
            for each in p["findings"]
            if not (each.get("type") == "ObjectMissing" and each.get("key") in self.comparison.moved)
        ]
        if wrong:
            raise Finding(f"verify --deep exited with {code}: {wrong[0]}", "\n".join(wrong[:20]))

    def _ignores(self, value: bytes | None) -> bool:
        form, errors = self.plan.spec["format"], self.plan.spec["errors"]
        if value is None:
            return bool(errors.get("onNullValue") == "Ignore")
        return bool(form["converter"] != "Bytes" and value.endswith(b", broken") and errors.get("tolerance") == "All")


def _raise(wrong: list[str], log: str) -> None:
    if wrong:
        raise Finding(f"{len(wrong)} differences: {wrong[0]}", "\n".join([*wrong[:20], log]))


def sleep(rng: random.Random, max_seconds: float) -> None:
    """Sleeps for a random time, so that faults occur at any point of a round."""
    time.sleep(rng.uniform(0, max_seconds))
