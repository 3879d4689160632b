"""Faults of drivers: killed, stopped, ended in order, and replaced by others."""

from __future__ import annotations

import os
import random
import signal
import time

from devtools.chaos.moments import REQUEST_SECONDS, TARGETS, any_point, kill_at, target, terminated
from devtools.chaos.world import FENCED, KILLED, OK, TRY_AGAIN, Finding, World, sleep
from devtools.faults.s3_proxy import Hold
from devtools.processes import in_session

_GONE_SECONDS = 30.0

# -- kills -----------------------------------------------------------------------------------------------------------


def kill(world: World, rng: random.Random) -> None:
    """At any moment, while it starts as well."""
    driver = world.running(progress=rng.random() < 0.8)
    sleep(rng, 2)
    world.killed(driver)


def kill_at_request(world: World, rng: random.Random) -> None:
    """Before the store gets a request or after it has done it, which is then the last one it gets."""
    kill_at(world, world.running(), rng, target(rng), any_point(rng), rng.randint(1, 3))


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
    rule = driver.proxy.when(target(rng, among=among), hold, nth=rng.randint(1, 2))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
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


# -- stops -----------------------------------------------------------------------------------------------------------


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
    terminated(world, driver, {OK})


def terminate_in_request(world: World, rng: random.Random) -> None:
    """An orderly end while the store does not answer."""
    driver = world.running()
    hold = Hold()
    rule = driver.proxy.when(target(rng), hold, point=any_point(rng))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    try:
        terminated(world, driver, {OK})
    finally:
        hold.release.set()


def terminate_twice(world: World, rng: random.Random) -> None:
    """The second signal ends it at once."""
    driver = world.running(progress=rng.random() < 0.8)
    os.kill(driver.process.pid, signal.SIGTERM)
    sleep(rng, 1)
    terminated(world, driver, {OK, TRY_AGAIN})


# -- takeovers -------------------------------------------------------------------------------------------------------


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
        rule = first.proxy.when(target(rng), hold, point=any_point(rng), nth=rng.randint(1, 2))
        world.until(lambda: bool(rule.fired) or not first.process.running(), REQUEST_SECONDS)
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
    """Two drivers start together; the later claim wins, and one continues."""
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
