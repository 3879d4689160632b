"""The faults. Each takes a world under load and a random generator, does one harm, and checks how the drivers end.

Exit codes: 0 after SIGTERM, 3 only where another driver has claimed the ledger, 75, and what a SIGKILL leaves.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping

from devtools import tree
from devtools.chaos import limits
from devtools.chaos.drivers import Driver, is_record
from devtools.chaos.load import Burst
from devtools.chaos.world import FENCED, KILLED, OK, START_SECONDS, TRY_AGAIN, Finding, World, sleep
from devtools.chaos.worlds import plan
from devtools.fault_proxy import Answer, Drop, Hold, Kill, Point
from devtools.processes import in_session
from devtools.relay import Delay
from devtools.s3_requests import Request, mutating
from devtools.topics import Topics

Fault = Callable[[World, random.Random], None]

TARGETS: tuple[tuple[str, str], ...] = (
    ("PutObject", "/intent/"),
    ("PutObject", "/staging/"),
    ("PutObject", "/ledger/"),
    ("PutObject", "/ledger/"),
    ("CreateMultipartUpload", ""),
    ("UploadPart", ""),
    ("CompleteMultipartUpload", ""),
    ("CompleteMultipartUpload", ""),
    ("DeleteObjects", ""),
    ("AbortMultipartUpload", ""),
    ("PutObject", "/snapshot/"),
    ("PutObject", "/published/"),
)
"""Requests at which something happens: their kind and what their key holds."""

_REQUEST_SECONDS = 8.0
_GONE_SECONDS = 30.0


def _target(rng: random.Random, *, among: tuple[tuple[str, str], ...] = TARGETS) -> Callable[[Request], bool]:
    kind, part = rng.choice(among)
    return lambda request: request.kind == kind and part in request.key and "/probe/" not in request.key


def _point(rng: random.Random) -> Point:
    return "before" if rng.random() < 0.5 else "after"


# -- kills ---------------------------------------------------------------------------------------------------------


def kill(world: World, rng: random.Random) -> None:
    """At any moment, while it starts as well."""
    driver = world.running(progress=rng.random() < 0.8)
    sleep(rng, 2)
    world.killed(driver)


def kill_at_request(world: World, rng: random.Random) -> None:
    """Before the store gets a request or after it has done it, which is then the last one it gets."""
    _kill_at(world, world.running(), rng, _target(rng), _point(rng), rng.randint(1, 3))


def _kill_at(
    world: World, driver: Driver, rng: random.Random, matches: Callable[[Request], bool], point: Point, nth: int
) -> bool:
    rule = driver.proxy.when(matches, Kill(driver.process), point=point, nth=nth)
    world.until(lambda: bool(rule.fired) or not driver.process.running(), _REQUEST_SECONDS)
    rule.remove()
    world.killed(driver)
    driver.proxy.resume()
    world.fired["kills at requests"] += bool(rule.fired)
    return bool(rule.fired)


def kill_driver_alone(world: World, rng: random.Random) -> None:
    """JVM and workers must not outlive it."""
    driver = world.running()
    sleep(rng, 1)
    driver.process.kill_alone()
    if not world.until(lambda: not in_session(driver.process.pid), _GONE_SECONDS):
        alive = in_session(driver.process.pid)
        world.killed(driver)
        raise Finding(
            f"{len(alive)} processes outlive their driver by {_GONE_SECONDS:g} s", driver.process.last_lines()
        )
    world.ended(driver, {*KILLED})


def kill_jvm(world: World, rng: random.Random) -> None:
    """As the kernel does when memory ends."""
    driver = world.running()
    for pid in driver.children(b"org.apache.spark")[:1]:
        os.kill(pid, signal.SIGKILL)
    world.ended(driver, {TRY_AGAIN})


def kill_worker(world: World, rng: random.Random) -> None:
    """A Python worker is killed: Spark tries its task again."""
    driver = world.running()
    sleep(rng, 1)
    workers = driver.children(b"pyspark")
    if workers:
        os.kill(rng.choice(workers), signal.SIGKILL)
        world.fired["workers killed"] += 1
    time.sleep(2)
    world.survived(driver)


def late_request(world: World, rng: random.Random) -> None:
    """A request is on its way when its driver is killed, and arrives when the next driver has begun."""
    among = tuple(target for target in TARGETS if target[0] != "UploadPart")
    driver = world.running()
    hold = Hold()
    rule = driver.proxy.when(_target(rng, among=among), hold, nth=rng.randint(1, 2))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), _REQUEST_SECONDS)
    time.sleep(0.1)  # its body is in the proxy by then
    rule.remove()
    world.killed(driver)
    try:
        world.running()
        sleep(rng, 1)
    finally:
        world.fired["late requests"] += bool(rule.fired)
        hold.release.set()
    time.sleep(1)


# -- stops ---------------------------------------------------------------------------------------------------------


def pause(world: World, rng: random.Random) -> None:
    """SIGSTOP and SIGCONT for the driver and all it started."""
    driver = world.running()
    sleep(rng, 1)
    driver.process.pause()
    time.sleep(rng.choice((0.5, 3, 12)))
    driver.process.resume()
    time.sleep(1)
    world.survived(driver)


def terminate(world: World, rng: random.Random) -> None:
    """An orderly end, at any moment."""
    driver = world.running(progress=rng.random() < 0.8)
    sleep(rng, 3)
    _terminated(world, driver, {OK})


def terminate_in_request(world: World, rng: random.Random) -> None:
    """An orderly end while the store does not answer."""
    driver = world.running()
    hold = Hold()
    rule = driver.proxy.when(_target(rng), hold, point=_point(rng))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), _REQUEST_SECONDS)
    try:
        _terminated(world, driver, {OK})
    finally:
        hold.release.set()


def terminate_twice(world: World, rng: random.Random) -> None:
    """The second signal ends it at once."""
    driver = world.running(progress=rng.random() < 0.8)
    os.kill(driver.process.pid, signal.SIGTERM)
    sleep(rng, 1)
    _terminated(world, driver, {OK, TRY_AGAIN})


def _terminated(world: World, driver: Driver, codes: set[int]) -> None:
    if driver.process.running():
        os.kill(driver.process.pid, signal.SIGTERM)
    # Python's own default, while the interpreter is starting.
    world.ended(driver, codes | {-signal.SIGTERM} if not driver.proxy.requests else codes, 60)


# -- takeovers -----------------------------------------------------------------------------------------------------


def takeover(world: World, rng: random.Random) -> None:
    """A second driver starts while the first one works."""
    first = world.running()
    second = world.fleet.start()
    world.driver = second
    try:
        world.progress(second)
        world.fenced(first)
    finally:
        first.process.kill()


def takeover_of_paused(world: World, rng: random.Random) -> None:
    """The first driver sleeps, often inside a request, while the second one works, and wakes."""
    first = world.running()
    hold = Hold()
    if rng.random() < 0.8:
        rule = first.proxy.when(_target(rng), hold, point=_point(rng), nth=rng.randint(1, 2))
        world.until(lambda: bool(rule.fired) or not first.process.running(), _REQUEST_SECONDS)
        rule.remove()
        world.fired["sleeps inside requests"] += bool(rule.fired)
    if not first.process.running():
        world.survived(first)
        hold.release.set()
        return
    first.process.pause()
    second = world.driver = world.fleet.start()
    try:
        world.progress(second)
        hold.release.set()
        first.process.resume()
        world.fenced(first)
    finally:
        hold.release.set()
        first.process.kill()


def two_at_once(world: World, rng: random.Random) -> None:
    """Two drivers start together; the later claim wins, and one goes on."""
    if world.driver is not None:
        world.killed(world.driver)
    both = world.fleet.start(cores=1), world.fleet.start(cores=1)
    if not world.until(lambda: any(not each.process.running() for each in both), 240):
        raise Finding("two drivers of one sink run side by side", both[0].process.last_lines())
    for each in both:
        if each.process.running():
            world.driver = each
        else:
            world.ended(each, {FENCED, TRY_AGAIN})
    if all(each.code == FENCED for each in both):
        raise Finding("of two drivers that start at once both are fenced", both[0].process.last_lines())


# -- Kafka ---------------------------------------------------------------------------------------------------------


def broker_restart(world: World, rng: random.Random) -> None:
    driver = world.running()
    sleep(rng, 1)
    world.servers.broker.restart()
    time.sleep(1)
    world.survived(driver)


def broker_kill(world: World, rng: random.Random) -> None:
    driver = world.running()
    sleep(rng, 1)
    world.servers.broker.kill()
    time.sleep(rng.choice((0, 5)))
    world.servers.broker.start()
    time.sleep(1)
    world.survived(driver)


def broker_pause(world: World, rng: random.Random) -> None:
    driver = world.running()
    process = world.servers.broker.process
    assert process is not None
    process.pause()
    try:
        time.sleep(rng.choice((2, 8)))
    finally:
        process.resume()
    world.survived(driver)


# -- S3 ------------------------------------------------------------------------------------------------------------


def _during(world: World, rng: random.Random, name: str, fault: object, point: Point, times: int, share: float) -> None:
    """`fault` at a share of the requests that change something, `times` times at most, for some seconds."""
    driver = world.running()
    chance = random.Random(rng.random())
    only = _target(rng) if rng.random() < 0.5 else mutating

    def matches(request: Request) -> bool:
        return only(request) and chance.random() < share

    rule = driver.proxy.when(matches, fault, point=point, times=times)  # type: ignore[arg-type]
    world.until(lambda: len(rule.fired) >= times or not driver.process.running(), _REQUEST_SECONDS)
    rule.remove()
    world.fired[name] += len(rule.fired)
    world.survived(driver)


def s3_dropped(world: World, rng: random.Random) -> None:
    """Requests, or their replies, are lost."""
    point: Point = "after" if rng.random() < 0.7 else "before"
    _during(world, rng, f"requests dropped {point}", Drop(), point, rng.randint(1, 12), rng.choice((0.3, 1.0)))


def s3_status(world: World, rng: random.Random) -> None:
    """503, 500 and 409, before the store gets the request and, where only the reply is replaced, after."""
    status, code = rng.choice(
        ((503, "SlowDown"), (500, "InternalError"), (409, "ConditionalRequestConflict"), (409, "OperationAborted"))
    )
    times, share = rng.randint(1, 14), rng.choice((0.3, 1.0))
    point = "before" if status == 409 else _point(rng)
    _during(world, rng, f"answers {status}", Answer(status, code), point, times, share)


def s3_delay(world: World, rng: random.Random) -> None:
    _during(world, rng, "requests delayed", Delay(rng.uniform(0.2, 2)), _point(rng), 30, 0.5)


def s3_hold(world: World, rng: random.Random) -> None:
    """A request, or its reply, is held for some seconds while others pass."""
    driver = world.running()
    hold = Hold()
    rule = driver.proxy.when(_target(rng), hold, point=_point(rng), nth=rng.randint(1, 3))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), _REQUEST_SECONDS)
    time.sleep(rng.choice((1, 6)))
    hold.release.set()
    rule.remove()
    world.fired["requests held"] += bool(rule.fired)
    world.survived(driver)


def s3_refused(world: World, rng: random.Random) -> None:
    """The network to the store is down for a while."""
    driver = world.running()
    sleep(rng, 1)
    driver.proxy.refuse()
    time.sleep(rng.choice((2, 10)))
    driver.proxy.resume()
    world.fired["outages of the network to S3"] += 1
    world.survived(driver)


def s3_restart(world: World, rng: random.Random) -> None:
    """The server is killed, or ended, and comes back; completions wait meanwhile.

    VersityGW that is killed inside a completion answers 200 to the next try although there is no object. S3 does not.
    """
    driver = world.running()
    sleep(rng, 1)
    hold = Hold()
    rule = driver.proxy.when(_is_completion, hold, times=None)
    open_ones = [each for each in list(driver.proxy.requests) if _is_completion(each) and each not in rule.fired]
    world.until(lambda: not {*open_ones} - {each for each, _ in list(driver.proxy.answered)}, _REQUEST_SECONDS)
    server = world.servers.s3
    try:
        if rng.random() < 0.5:
            server.kill()
        else:
            server.stop()
        time.sleep(rng.choice((0, 3)))
        server.start()
    finally:
        rule.remove()
        hold.release.set()
    world.fired["restarts of the S3 server"] += 1
    world.survived(driver)


def _is_completion(request: Request) -> bool:
    return request.kind == "CompleteMultipartUpload"


def s3_outage(world: World, rng: random.Random) -> None:
    """A record is stored, its reply is lost, and the store does not answer for longer than requests are tried again."""
    driver = world.running()
    rule = driver.proxy.when(is_record, Drop(), point="after")
    world.until(lambda: bool(rule.fired), _REQUEST_SECONDS)
    driver.proxy.refuse()
    try:
        world.fired["long outages of S3"] += 1
        world.ended(driver, {TRY_AGAIN}, 400)
    finally:
        driver.proxy.resume()


# -- resources -----------------------------------------------------------------------------------------------------


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


# -- what others do ------------------------------------------------------------------------------------------------


def lost_uploads(world: World, rng: random.Random) -> None:
    """The driver is killed between record and completion, and a lifecycle rule aborts all uploads."""
    _kill_at(world, world.running(), rng, is_record, "after", rng.randint(1, 3))
    for upload_id, key in tree.uploads(world.client, world.bucket).items():
        world.client.abort_multipart_upload(Bucket=world.bucket, Key=key, UploadId=upload_id)
        world.fired["uploads aborted by hand"] += 1


def lost_staging(world: World, rng: random.Random) -> None:
    """The driver is killed, and somebody deletes what was staged."""
    _kill_at(world, world.running(), rng, is_record, "after", rng.randint(1, 3))
    for key in tree.objects(world.client, world.bucket, ledger=True):
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
        _terminated(world, driver, {OK})
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
        _kill_at(world, driver, rng, _target(rng), _point(rng), rng.randint(1, 3))
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
    _kill_at(world, driver, rng, _target(rng), _point(rng), rng.randint(1, 3))
    world.trusts_group = False
    topics = Topics(world.servers.broker.bootstrap)
    ends = topics.ends(world.topic)
    topics.commit(world.group, world.topic, {p: rng.randint(0, end) for p, end in ends.items()})
    world.fired["group offsets set by hand"] += 1


FAULTS: Mapping[str, Fault] = {
    "kill": kill,
    "kill-at-request": kill_at_request,
    "kill-driver-alone": kill_driver_alone,
    "kill-jvm": kill_jvm,
    "kill-worker": kill_worker,
    "late-request": late_request,
    "pause": pause,
    "terminate": terminate,
    "terminate-in-request": terminate_in_request,
    "terminate-twice": terminate_twice,
    "takeover": takeover,
    "takeover-of-paused": takeover_of_paused,
    "two-at-once": two_at_once,
    "broker-restart": broker_restart,
    "broker-kill": broker_kill,
    "broker-pause": broker_pause,
    "s3-dropped": s3_dropped,
    "s3-status": s3_status,
    "s3-delay": s3_delay,
    "s3-hold": s3_hold,
    "s3-refused": s3_refused,
    "s3-restart": s3_restart,
    "s3-outage": s3_outage,
    "disk-full": disk_full,
    "file-limit": file_limit,
    "out-of-memory": out_of_memory,
    "lost-uploads": lost_uploads,
    "lost-staging": lost_staging,
    "retention": retention,
    "partitions": partitions,
    "growth": growth,
    "edit": edit,
    "reader": reader,
    "group-reset": group_reset,
}
"""By the names of `worlds.FAULTS`."""
