"""One sink under faults: its topic, its load, its drivers and what is known to be right about it."""

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
from devtools.chaos.compare import Comparison, Log, Settings
from devtools.chaos.drivers import Driver, Fleet, Servers
from devtools.chaos.load import Loader
from devtools.chaos.worlds import Cycle, WorldPlan
from devtools.processes import ServerFailedError, wait_until
from devtools.topics import Topics

KILLED = (-9, 137)
OK, FENCED, TRY_AGAIN = 0, 3, 75
START_SECONDS = 240.0
"""How long a driver may take until its first round under load, on a machine with other work."""
TAIL_LINES = 25
STARTS = 4
"""Drivers in a row that may end with 75 before one makes progress."""


class Finding(Exception):
    """Something that must not be; `log` is the end of a driver's or command's log, where there is one."""

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.log = log


@dataclass(frozen=True)
class Known:
    """A finding with where it was made."""

    seed: int
    world: int
    cycle: int
    fault: str
    what: str
    log: str


class World:
    """A topic, a bucket and the sink between them. `driver` is the process that is to run, if any does."""

    def __init__(self, servers: Servers, folder: Path, plan: WorldPlan, *, name: str) -> None:
        self.servers = servers
        self.plan = plan
        self.topic = f"t-{name}"
        self.bucket = f"b-{name}"
        self.partitions = plan.partitions
        self.topics = Topics(servers.broker.bootstrap)
        self.client = servers.client()
        self.fleet = Fleet(
            servers, folder, name=name, topic=self.topic, bucket=self.bucket, spec=plan.spec, zone=plan.zone
        )
        self.fleet.memory = plan.memory
        self.loader = Loader(servers.broker.bootstrap, self.topic)
        self.comparison = Comparison(
            Log(servers.broker.bootstrap, self.topic), self.client, self.bucket, ignored=self._ignores
        )
        self.driver: Driver | None = None
        self.kinds: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.trusts_group = True
        self._use_settings()

    def open(self) -> None:
        """Makes the topic and the bucket."""
        self.client.create_bucket(Bucket=self.bucket)
        if self.plan.versioning:
            self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        self.topics.create(self.topic, partitions=self.partitions, settings={"segment.bytes": "1048576"})

    def close(self, *, keep: bool = False) -> None:
        """Ends all processes, and removes the data unless it is to be kept."""
        self.loader.close()
        self.fleet.close()
        if keep:
            return
        with contextlib.suppress(Exception):
            bucket_listing.clear(self.client, self.bucket)
        with contextlib.suppress(Exception):
            self.topics.delete(self.topic)

    # -- load --------------------------------------------------------------------------------------------------------

    def load(self, cycle: Cycle) -> None:
        """Begins the cycle's burst."""
        if cycle.burst.records:
            self.loader.begin(f"c{cycle.number}", cycle.seed, cycle.burst)
        else:
            self.loader.finish()

    # -- drivers -----------------------------------------------------------------------------------------------------

    def running(self, *, progress: bool = True) -> Driver:
        """The driver; with `progress` after its next record since now, where there is load for one."""
        for _ in range(STARTS):
            driver = self.driver
            if driver is not None and not driver.process.running():
                self.ended(driver, {TRY_AGAIN})
                driver = None
            if driver is None:
                driver = self.driver = self.fleet.start()
            if not progress or self.progress(driver):
                return driver
        raise Finding(f"{STARTS} drivers in a row ended with 75", self.fleet.drivers[-1].process.last_lines(TAIL_LINES))

    def progress(self, driver: Driver) -> bool:
        """Waits until the driver has stored one record more beyond its claim; where nothing is produced, its claim.

        False when it ended with 75 before.
        """
        wanted = max(2, driver.records() + 1) if self.loader.busy else 1
        try:
            if driver.wait_for_records(wanted, START_SECONDS):
                return True
        except ServerFailedError as error:
            what = str(error).partition("\n")[0]
            raise Finding(f"a driver makes no progress: {what}", driver.process.last_lines(TAIL_LINES)) from None
        self.ended(driver, {TRY_AGAIN})
        return False

    def ended(self, driver: Driver, codes: Collection[int], seconds: float = 90.0) -> int:
        """Waits for the driver's end and returns the exit code. Raises Finding when it is not one of `codes`."""
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
            raise Finding(f"a driver ended with {code} instead of {expected}", driver.process.last_lines(TAIL_LINES))
        return code

    def killed(self, driver: Driver) -> None:
        """SIGKILL for the driver and all it started."""
        driver.process.kill()
        self.ended(driver, {*KILLED, TRY_AGAIN})

    def survived(self, driver: Driver) -> None:
        """After a fault that a driver is to survive, or to end with 75: nothing else is right."""
        if not driver.process.running():
            self.ended(driver, {TRY_AGAIN})

    def fenced(self, driver: Driver, seconds: float = 180.0) -> None:
        """Another driver has claimed the ledger: this one has to end with 3; 75 where it could not ask the store."""
        self.ended(driver, {FENCED}, seconds)

    def until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Waits until `is_so`, at most so long; returns whether it is."""
        try:
            wait_until(is_so, "", seconds=seconds)
        except ServerFailedError:
            return False
        return True

    def edit(self, other: WorldPlan) -> None:
        """Rotation and partitioner of another plan from the next start on."""
        for section in ("rotation", "partitioner"):
            self.fleet.spec[section] = other.spec[section]
        self._use_settings()

    def _use_settings(self) -> None:
        self.comparison.settings.append(Settings.of(self.fleet.spec))

    # -- what is right -----------------------------------------------------------------------------------------------

    def committed(self) -> dict[int, int]:
        """The group's offsets, by a client that was made just now."""
        return Topics(self.servers.broker.bootstrap).committed(self.group, self.topic)

    @property
    def group(self) -> str:
        return f"s3sink-default.{self.fleet.name}"

    def look(self) -> None:
        """Compares what is visible now, while the sink may be running. Raises Finding."""
        committed = self.committed() if self.trusts_group else {}
        _raise(self.comparison.look(committed, range(self.partitions)), "")

    def quiesce(self) -> None:
        """Ends the load and the driver, publishes everything, and compares all of it. Raises Finding."""
        self.loader.settle()
        if self.driver is not None:
            driver = self.driver
            driver.process.terminate(60)
            self.ended(driver, {OK, TRY_AGAIN})
        for attempt in range(3):
            driver = self.fleet.start("--until-caught-up", "--publish-open")
            if self.ended(driver, {OK, TRY_AGAIN}, START_SECONDS * 2) == OK:
                break
            if attempt == 2:
                raise Finding("three runs to the end ended with 75", driver.process.last_lines(TAIL_LINES))
        log = driver.process.last_lines(TAIL_LINES)
        _raise(self.comparison.all_of_it(self.committed(), range(self.partitions)), log)
        uploads = bucket_listing.uploads(self.client, self.bucket)
        if uploads:
            raise Finding(f"{len(uploads)} unfinished uploads are left: {sorted(uploads.values())[:3]}", log)
        staged = [key for key in bucket_listing.objects(self.client, self.bucket, ledger=True) if "/staging/" in key]
        if staged:
            raise Finding(f"{len(staged)} staging objects are left: {staged[:3]}", log)

    def verify(self) -> None:
        """`s3sink verify --deep`. Raises Finding unless it says that all is right."""
        code, output = self.fleet.command("verify", "--deep", "-o", "json", seconds=START_SECONDS * 2)
        if code == OK:
            return
        start = output.find("{\n")
        if code not in (5, 6) or start < 0:
            raise Finding(f"verify --deep ended with {code}", f"{output[:3000]}\n...\n{output[-3000:]}")
        wrong = [
            f"{p['topic']}-{p['partition']}: {each}"
            for p in json.loads(output[start : output.rindex("}") + 1])["partitions"]
            for each in p["findings"]
            if not (each.get("type") == "ObjectMissing" and each.get("key") in self.comparison.moved)
        ]
        if wrong:
            raise Finding(f"verify --deep ended with {code}: {wrong[0]}", "\n".join(wrong[:20]))

    def _ignores(self, value: bytes | None) -> bool:
        form, errors = self.plan.spec["format"], self.plan.spec["errors"]
        if value is None:
            return bool(errors.get("onNullValue") == "Ignore")
        return bool(form["converter"] == "Json" and value.endswith(b", broken") and errors.get("tolerance") == "All")


def _raise(wrong: list[str], log: str) -> None:
    if wrong:
        raise Finding(f"{len(wrong)} differences: {wrong[0]}", "\n".join([*wrong[:20], log]))


def sleep(rng: random.Random, most: float) -> None:
    """A pause at random, so that a fault meets any moment of a round."""
    time.sleep(rng.uniform(0, most))
