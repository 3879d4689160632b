"""Faults of the broker, the store, and the network to the store."""

from __future__ import annotations

import random
import time

from devtools.chaos.drivers import is_record
from devtools.chaos.fault_points import REQUEST_SECONDS, any_point, target
from devtools.chaos.scenario import TRANSIENT, Scenario, sleep
from devtools.faults.proxy import Delay
from devtools.faults.s3_proxy import Drop, Hold, Point, S3ErrorReply
from devtools.faults.s3_requests import S3Request, mutating

# -- Kafka -----------------------------------------------------------------------------------------------------------


def broker_restart(scenario: Scenario, rng: random.Random) -> None:
    driver = scenario.running_driver()
    sleep(rng, 1)
    scenario.servers.broker.restart()
    time.sleep(1)
    scenario.expect_survival(driver)


def broker_kill(scenario: Scenario, rng: random.Random) -> None:
    driver = scenario.running_driver()
    sleep(rng, 1)
    scenario.servers.broker.kill()
    time.sleep(rng.choice((0, 5)))
    scenario.servers.broker.start()
    time.sleep(1)
    scenario.expect_survival(driver)


def broker_pause(scenario: Scenario, rng: random.Random) -> None:
    driver = scenario.running_driver()
    process = scenario.servers.broker.process
    assert process is not None
    process.pause()
    try:
        time.sleep(rng.choice((2, 8)))
    finally:
        process.resume()
    scenario.expect_survival(driver)


# -- S3 --------------------------------------------------------------------------------------------------------------


def _during(
    scenario: Scenario, rng: random.Random, name: str, fault: object, point: Point, times: int, share: float
) -> None:
    """Injects `fault` into a share of the mutating requests, at most `times` times, for some seconds."""
    driver = scenario.running_driver()
    chance = random.Random(rng.random())
    only = target(rng) if rng.random() < 0.5 else mutating

    def matches(request: S3Request) -> bool:
        return only(request) and chance.random() < share

    rule = driver.proxy.when(matches, fault, point=point, times=times)  # type: ignore[arg-type]
    scenario.wait_until(lambda: len(rule.fired) >= times or not driver.process.running(), REQUEST_SECONDS)
    rule.remove()
    scenario.fired[name] += len(rule.fired)
    scenario.expect_survival(driver)


def s3_dropped(scenario: Scenario, rng: random.Random) -> None:
    """Drops requests or their replies."""
    point: Point = "after" if rng.random() < 0.7 else "before"
    _during(scenario, rng, f"requests dropped {point}", Drop(), point, rng.randint(1, 12), rng.choice((0.3, 1.0)))


def s3_status(scenario: Scenario, rng: random.Random) -> None:
    """Replies 503, 500 or 409, instead of the request or instead of the store's reply."""
    status, code = rng.choice(
        ((503, "SlowDown"), (500, "InternalError"), (409, "ConditionalRequestConflict"), (409, "OperationAborted"))
    )
    times, share = rng.randint(1, 14), rng.choice((0.3, 1.0))
    point = "before" if status == 409 else any_point(rng)
    _during(scenario, rng, f"answers {status}", S3ErrorReply(status, code), point, times, share)


def s3_delay(scenario: Scenario, rng: random.Random) -> None:
    _during(scenario, rng, "requests delayed", Delay(rng.uniform(0.2, 2)), any_point(rng), 30, 0.5)


def s3_hold(scenario: Scenario, rng: random.Random) -> None:
    """Holds a request or its reply for some seconds while others pass."""
    driver = scenario.running_driver()
    hold = Hold()
    rule = driver.proxy.when(target(rng), hold, point=any_point(rng), nth=rng.randint(1, 3))
    scenario.wait_until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    time.sleep(rng.choice((1, 6)))
    hold.release.set()
    rule.remove()
    scenario.fired["requests held"] += bool(rule.fired)
    scenario.expect_survival(driver)


def s3_refused(scenario: Scenario, rng: random.Random) -> None:
    """Interrupts the network to the store for some seconds."""
    driver = scenario.running_driver()
    sleep(rng, 1)
    driver.proxy.refuse()
    time.sleep(rng.choice((2, 10)))
    driver.proxy.resume()
    scenario.fired["outages of the network to S3"] += 1
    scenario.expect_survival(driver)


def s3_restart(scenario: Scenario, rng: random.Random) -> None:
    """Kills or stops the server and starts it again; completions are held meanwhile.

    A VersityGW killed inside a completion replies 200 to the next attempt although no object exists. S3 does not.
    """
    driver = scenario.running_driver()
    sleep(rng, 1)
    hold = Hold()
    rule = driver.proxy.when(_is_completion, hold, times=None)
    open_ones = [each for each in list(driver.proxy.requests) if _is_completion(each) and each not in rule.fired]
    scenario.wait_until(lambda: not {*open_ones} - {each for each, _ in list(driver.proxy.answered)}, REQUEST_SECONDS)
    server = scenario.servers.s3
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
    scenario.fired["restarts of the S3 server"] += 1
    scenario.expect_survival(driver)


def _is_completion(request: S3Request) -> bool:
    return request.kind == "CompleteMultipartUpload"


def s3_outage(scenario: Scenario, rng: random.Random) -> None:
    """Drops the reply to a stored record, followed by a store outage that outlasts the retries."""
    driver = scenario.running_driver()
    rule = driver.proxy.when(is_record, Drop(), point="after")
    scenario.wait_until(lambda: bool(rule.fired), REQUEST_SECONDS)
    driver.proxy.refuse()
    try:
        scenario.fired["long outages of S3"] += 1
        scenario.expect_exit(driver, {TRANSIENT}, 400)
    finally:
        driver.proxy.resume()
