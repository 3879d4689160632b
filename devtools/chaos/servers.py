"""Faults of the broker, of the store, and of the ways to it."""

from __future__ import annotations

import random
import time

from devtools.chaos.drivers import is_record
from devtools.chaos.moments import REQUEST_SECONDS, any_point, target
from devtools.chaos.world import TRY_AGAIN, World, sleep
from devtools.faults.proxy import Delay
from devtools.faults.s3_proxy import Answer, Drop, Hold, Point
from devtools.faults.s3_requests import Request, mutating

# -- Kafka -----------------------------------------------------------------------------------------------------------


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


# -- S3 --------------------------------------------------------------------------------------------------------------


def _during(world: World, rng: random.Random, name: str, fault: object, point: Point, times: int, share: float) -> None:
    """`fault` at a share of the requests that change something, `times` times at most, for some seconds."""
    driver = world.running()
    chance = random.Random(rng.random())
    only = target(rng) if rng.random() < 0.5 else mutating

    def matches(request: Request) -> bool:
        return only(request) and chance.random() < share

    rule = driver.proxy.when(matches, fault, point=point, times=times)  # type: ignore[arg-type]
    world.until(lambda: len(rule.fired) >= times or not driver.process.running(), REQUEST_SECONDS)
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
    point = "before" if status == 409 else any_point(rng)
    _during(world, rng, f"answers {status}", Answer(status, code), point, times, share)


def s3_delay(world: World, rng: random.Random) -> None:
    _during(world, rng, "requests delayed", Delay(rng.uniform(0.2, 2)), any_point(rng), 30, 0.5)


def s3_hold(world: World, rng: random.Random) -> None:
    """A request, or its reply, is held for some seconds while others pass."""
    driver = world.running()
    hold = Hold()
    rule = driver.proxy.when(target(rng), hold, point=any_point(rng), nth=rng.randint(1, 3))
    world.until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
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
    world.until(lambda: not {*open_ones} - {each for each, _ in list(driver.proxy.answered)}, REQUEST_SECONDS)
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
    world.until(lambda: bool(rule.fired), REQUEST_SECONDS)
    driver.proxy.refuse()
    try:
        world.fired["long outages of S3"] += 1
        world.ended(driver, {TRY_AGAIN}, 400)
    finally:
        driver.proxy.resume()
