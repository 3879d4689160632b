"""Faults of the machine, and changes of topics, objects and offsets by other programs."""

from __future__ import annotations

import random
import time

from devtools import bucket_listing
from devtools.chaos import limits, registry_plan
from devtools.chaos.drivers import DriverProcess, is_record
from devtools.chaos.fault_points import any_point, kill_at, target, terminate_with
from devtools.chaos.load import Burst
from devtools.chaos.process_faults import kill_jvm
from devtools.chaos.scenario import KILLED, OK, START_TIMEOUT_S, TRANSIENT, Scenario
from devtools.chaos.scenario_plan import plan_scenarios
from devtools.topics import Topics

# -- resources -------------------------------------------------------------------------------------------------------


def disk_full(scenario: Scenario, rng: random.Random) -> None:
    """Fills the folder for temporary files for some seconds, often in the first round, which is large."""
    if not limits.may_mount():
        file_limit(scenario, rng)
        return
    size = 24 << 20
    driver = _with_claim(scenario, rng, small_folder=size)
    with limits.filled(driver.process.pid, driver.temp, size) as full:
        scenario.fired["full disks"] += full
        time.sleep(rng.uniform(4, 10))
    scenario.expect_survival(driver)


def file_limit(scenario: Scenario, rng: random.Random) -> None:
    """Limits the size of files for some seconds, often in the first round, which is large."""
    driver = _with_claim(scenario, rng, small_folder=None)
    with limits.limited_files(driver.process.pid, 1 << 12):
        time.sleep(rng.uniform(4, 10))
    scenario.fired["file limits"] += 1
    scenario.expect_survival(driver)


def _with_claim(scenario: Scenario, rng: random.Random, *, small_folder: int | None) -> DriverProcess:
    """A new driver that has just claimed the ledger or has executed a round."""
    if scenario.driver is not None:
        scenario.kill(scenario.driver)
    driver = scenario.driver = scenario.fleet.start(small_folder=small_folder)
    if rng.random() < 0.3:
        scenario.wait_for_progress(driver)
    else:
        scenario.wait_until(lambda: driver.records() > 0 or not driver.process.running(), START_TIMEOUT_S)
    return driver


def out_of_memory(scenario: Scenario, rng: random.Random) -> None:
    """Sets a memory limit below the driver's configuration; the kernel kills the largest process."""
    if not limits.MemoryGroup.possible():
        kill_jvm(scenario, rng)
        return
    if scenario.driver is not None:
        scenario.kill(scenario.driver)
    driver = scenario.driver = scenario.fleet.start(memory=rng.choice((450, 600, 700)) << 20)
    scenario.wait_until(lambda: not driver.process.running() or driver.records() > 2, 120)
    if driver.process.running():
        scenario.kill(driver)
    else:
        scenario.expect_exit(driver, {TRANSIENT, *KILLED})
    if driver.group is not None:
        scenario.fired["out-of-memory kills"] += driver.group.kills


# -- changes by other programs ---------------------------------------------------------------------------------------


def lost_uploads(scenario: Scenario, rng: random.Random) -> None:
    """Kills the driver between record and completion, and aborts all uploads as a lifecycle rule does."""
    kill_at(scenario, scenario.running_driver(), rng, is_record, "after", rng.randint(1, 3))
    for upload_id, key in bucket_listing.uploads(scenario.client, scenario.bucket).items():
        scenario.client.abort_multipart_upload(Bucket=scenario.bucket, Key=key, UploadId=upload_id)
        scenario.fired["uploads aborted"] += 1


def lost_staging(scenario: Scenario, rng: random.Random) -> None:
    """Kills the driver and deletes all staging objects."""
    kill_at(scenario, scenario.running_driver(), rng, is_record, "after", rng.randint(1, 3))
    for key in bucket_listing.objects(scenario.client, scenario.bucket, ledger=True):
        if "/staging/" in key:
            scenario.client.delete_object(Bucket=scenario.bucket, Key=key)
            scenario.fired["staging objects deleted"] += 1


def retention(scenario: Scenario, rng: random.Random) -> None:
    """Deletes the records below the committed offsets; may also kill the driver."""
    driver = scenario.running_driver()
    committed = scenario.committed() if scenario.trusts_group else {}
    scenario.comparison.log.update(range(scenario.partitions))
    topics = Topics(scenario.servers.broker.bootstrap)
    starts = topics.starts(scenario.topic)
    for partition, offset in committed.items():
        if offset > starts.get(partition, 0):
            topics.delete_records(scenario.topic, partition, offset)
            scenario.fired["deletions of records by retention"] += 1
    if rng.random() < 0.5:
        scenario.kill(driver)


def partitions(scenario: Scenario, rng: random.Random) -> None:
    """Adds partitions to the topic, which the driver discovers."""
    scenario.running_driver()
    more = min(64, scenario.partitions + rng.randint(1, 16))
    if more > scenario.partitions:
        Topics(scenario.servers.broker.bootstrap).add_partitions(scenario.topic, more)
        scenario.partitions = more
        scenario.fired["partitions added"] += 1


def growth(scenario: Scenario, rng: random.Random) -> None:
    """Activates all partitions while a driver runs that has read a few active ones."""
    few, every = tuple(range(min(5, scenario.partitions))), tuple(range(scenario.partitions))
    scenario.loader.finish()
    for number, active in enumerate((few, every, few, every)):
        burst = Burst(records=40 * len(active), seconds=1, active=active, transactional=0.2, aborted=0.0)
        scenario.loader.begin(f"g{number}-{rng.getrandbits(32):x}", rng.getrandbits(48), burst)
        scenario.wait_for_progress(scenario.running_driver())
    scenario.fired["growths of activity"] += 1


def edit(scenario: Scenario, rng: random.Random) -> None:
    """Changes rotation and partitioner of the manifest before the next start, with a registry also
    `schemaCompatibility`."""
    driver = scenario.running_driver()
    if rng.random() < 0.5:
        scenario.kill(driver)
    else:
        terminate_with(scenario, driver, {OK})
    reads_value = scenario.plan.spec["format"]["converter"] != "Bytes"
    others = [
        each
        for each in plan_scenarios(rng.getrandbits(32), 60)
        if reads_value or "Field" not in str(each.spec["partitioner"])
    ]
    compatibility = rng.choice(registry_plan.COMPATIBILITIES) if scenario.registered and rng.random() < 0.5 else None
    scenario.edit(rng.choice(others), compatibility)
    scenario.fired["edits"] += 1


def reader(scenario: Scenario, rng: random.Random) -> None:
    """Deletes objects below the group's committed offsets, as a reader does; often kills the driver first."""
    driver = scenario.running_driver()
    if not scenario.trusts_group:
        return
    if rng.random() < 0.5:
        kill_at(scenario, driver, rng, target(rng), any_point(rng), rng.randint(1, 3))
    committed = scenario.committed()
    scenario.compare_visible()
    ends: dict[str, tuple[int, int]] = {}
    for (partition, offset), key in scenario.comparison.key_of_record.items():
        ends[key] = partition, max(offset, ends.get(key, (0, -1))[1])
    for key, (partition, last) in ends.items():
        if last < committed.get(partition, 0) and key not in scenario.comparison.moved and rng.random() < 0.7:
            scenario.comparison.moved.add(key)
            scenario.client.delete_object(Bucket=scenario.bucket, Key=key)
            scenario.fired["objects moved by a reader"] += 1


def group_reset(scenario: Scenario, rng: random.Random) -> None:
    """Sets the group's offsets while no driver runs. Readers of this scenario can no longer rely on them."""
    driver = scenario.running_driver()
    kill_at(scenario, driver, rng, target(rng), any_point(rng), rng.randint(1, 3))
    scenario.trusts_group = False
    topics = Topics(scenario.servers.broker.bootstrap)
    ends = topics.ends(scenario.topic)
    topics.commit(scenario.group, scenario.topic, {p: rng.randint(0, end) for p, end in ends.items()})
    scenario.fired["group offsets set"] += 1
