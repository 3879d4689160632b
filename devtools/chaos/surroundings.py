"""Faults of the machine, and what other people and programs do to topics, objects and offsets."""

from __future__ import annotations

import random
import time

from devtools import bucket_listing
from devtools.chaos import limits
from devtools.chaos.drivers import Driver, is_record
from devtools.chaos.load import Burst
from devtools.chaos.moments import any_point, kill_at, target, terminated
from devtools.chaos.processes import kill_jvm
from devtools.chaos.world import KILLED, OK, START_SECONDS, TRY_AGAIN, World
from devtools.chaos.worlds import plan
from devtools.topics import Topics

# -- resources -------------------------------------------------------------------------------------------------------


def disk_full(world: World, rng: random.Random) -> None:
    """The folder for temporary files has no byte left for some seconds, often in the first round, which is large."""
    if not limits.may_mount():
        file_limit(world, rng)
        return
    size = 24 << 20
    driver = _with_claim(world, rng, small_folder=size)
    with limits.filled(driver.process.pid, driver.temp, size) as full:
        world.fired["full disks"] += full
        time.sleep(rng.uniform(4, 10))
    world.survived(driver)


def file_limit(world: World, rng: random.Random) -> None:
    """Files cannot grow for some seconds, often in the first round, which is large."""
    driver = _with_claim(world, rng, small_folder=None)
    with limits.limited_files(driver.process.pid, 1 << 12):
        time.sleep(rng.uniform(4, 10))
    world.fired["file limits"] += 1
    world.survived(driver)


def _with_claim(world: World, rng: random.Random, *, small_folder: int | None) -> Driver:
    """A new driver that has claimed the ledger just now, or has made a round."""
    if world.driver is not None:
        world.killed(world.driver)
    driver = world.driver = world.fleet.start(small_folder=small_folder)
    if rng.random() < 0.3:
        world.progress(driver)
    else:
        world.until(lambda: driver.records() > 0 or not driver.process.running(), START_SECONDS)
    return driver


def out_of_memory(world: World, rng: random.Random) -> None:
    """The control group has less memory than the driver was promised: the kernel kills what is largest."""
    if not limits.MemoryGroup.possible():
        kill_jvm(world, rng)
        return
    if world.driver is not None:
        world.killed(world.driver)
    driver = world.driver = world.fleet.start(memory=rng.choice((450, 600, 700)) << 20)
    world.until(lambda: not driver.process.running() or driver.records() > 2, 120)
    if driver.process.running():
        world.killed(driver)
    else:
        world.ended(driver, {TRY_AGAIN, *KILLED})
    if driver.group is not None:
        world.fired["kills by the kernel for want of memory"] += driver.group.kills


# -- what others do --------------------------------------------------------------------------------------------------


def lost_uploads(world: World, rng: random.Random) -> None:
    """The driver is killed between record and completion, and a lifecycle rule aborts all uploads."""
    kill_at(world, world.running(), rng, is_record, "after", rng.randint(1, 3))
    for upload_id, key in bucket_listing.uploads(world.client, world.bucket).items():
        world.client.abort_multipart_upload(Bucket=world.bucket, Key=key, UploadId=upload_id)
        world.fired["uploads aborted by hand"] += 1


def lost_staging(world: World, rng: random.Random) -> None:
    """The driver is killed, and somebody deletes what was staged."""
    kill_at(world, world.running(), rng, is_record, "after", rng.randint(1, 3))
    for key in bucket_listing.objects(world.client, world.bucket, ledger=True):
        if "/staging/" in key:
            world.client.delete_object(Bucket=world.bucket, Key=key)
            world.fired["staging objects deleted by hand"] += 1


def retention(world: World, rng: random.Random) -> None:
    """Kafka drops what is below the committed offsets, at any time of a driver's life, a kill included."""
    driver = world.running()
    committed = world.committed() if world.trusts_group else {}
    world.comparison.log.update(range(world.partitions))
    topics = Topics(world.servers.broker.bootstrap)
    starts = topics.starts(world.topic)
    for partition, offset in committed.items():
        if offset > starts.get(partition, 0):
            topics.delete_records(world.topic, partition, offset)
            world.fired["deletions of records by retention"] += 1
    if rng.random() < 0.5:
        world.killed(driver)


def partitions(world: World, rng: random.Random) -> None:
    """The topic gets more partitions, which the driver finds by itself."""
    world.running()
    more = min(64, world.partitions + rng.randint(1, 16))
    if more > world.partitions:
        Topics(world.servers.broker.bootstrap).add_partitions(world.topic, more)
        world.partitions = more
        world.fired["partitions added"] += 1


def growth(world: World, rng: random.Random) -> None:
    """A driver that has known a few active partitions meets them all, while it runs."""
    few, every = tuple(range(min(5, world.partitions))), tuple(range(world.partitions))
    world.loader.finish()
    for number, active in enumerate((few, every, few, every)):
        burst = Burst(records=40 * len(active), seconds=1, active=active, transactional=0.2, aborted=0.0)
        world.loader.begin(f"g{number}-{rng.getrandbits(32):x}", rng.getrandbits(48), burst)
        world.progress(world.running())
    world.fired["growths of activity"] += 1


def edit(world: World, rng: random.Random) -> None:
    """The manifest has another rotation and partitioner at the next start."""
    driver = world.running()
    if rng.random() < 0.5:
        world.killed(driver)
    else:
        terminated(world, driver, {OK})
    reads_value = world.plan.spec["format"]["converter"] == "Json"
    others = [
        each for each in plan(rng.getrandbits(32), 60) if reads_value or "Field" not in str(each.spec["partitioner"])
    ]
    world.edit(rng.choice(others))
    world.fired["edits"] += 1


def reader(world: World, rng: random.Random) -> None:
    """A reader takes objects away that lie below the group's committed offsets; often the driver is killed then."""
    driver = world.running()
    if not world.trusts_group:
        return
    if rng.random() < 0.5:
        kill_at(world, driver, rng, target(rng), any_point(rng), rng.randint(1, 3))
    committed = world.committed()
    world.look()
    ends: dict[str, tuple[int, int]] = {}
    for (partition, offset), key in world.comparison.placed.items():
        ends[key] = partition, max(offset, ends.get(key, (0, -1))[1])
    for key, (partition, last) in ends.items():
        if last < committed.get(partition, 0) and key not in world.comparison.moved and rng.random() < 0.7:
            world.comparison.moved.add(key)
            world.client.delete_object(Bucket=world.bucket, Key=key)
            world.fired["objects moved by a reader"] += 1


def group_reset(world: World, rng: random.Random) -> None:
    """Somebody sets the group's offsets while no driver runs. Readers can no longer go by them in this world."""
    driver = world.running()
    kill_at(world, driver, rng, target(rng), any_point(rng), rng.randint(1, 3))
    world.trusts_group = False
    topics = Topics(world.servers.broker.bootstrap)
    ends = topics.ends(world.topic)
    topics.commit(world.group, world.topic, {p: rng.randint(0, end) for p, end in ends.items()})
    world.fired["group offsets set by hand"] += 1
