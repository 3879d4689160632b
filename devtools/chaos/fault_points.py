"""Points at which a fault occurs: at a request of a driver, before the store receives it or after its execution."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

from devtools.chaos.drivers import DriverProcess
from devtools.chaos.scenario import Scenario
from devtools.faults.s3_proxy import Kill, Point
from devtools.faults.s3_requests import S3Request

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
"""Requests at which faults occur: their kind and a part of their key."""

REQUEST_SECONDS = 8.0
"""Maximum wait of a fault for its request; then the fault occurs at once."""


def target(rng: random.Random, *, among: tuple[tuple[str, str], ...] = TARGETS) -> Callable[[S3Request], bool]:
    kind, part = rng.choice(among)
    return lambda request: request.kind == kind and part in request.key and "/probe/" not in request.key


def any_point(rng: random.Random) -> Point:
    return "before" if rng.random() < 0.5 else "after"


def kill_at(
    scenario: Scenario,
    driver: DriverProcess,
    rng: random.Random,
    matches: Callable[[S3Request], bool],
    point: Point,
    nth: int,
) -> bool:
    rule = driver.proxy.when(matches, Kill(driver.process), point=point, nth=nth)
    scenario.wait_until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    rule.remove()
    scenario.kill(driver)
    driver.proxy.resume()
    scenario.fired["kills at requests"] += bool(rule.fired)
    return bool(rule.fired)


def terminate_with(scenario: Scenario, driver: DriverProcess, codes: set[int]) -> None:
    if driver.process.running():
        os.kill(driver.process.pid, signal.SIGTERM)
    # Python's default while the interpreter starts.
    scenario.expect_exit(driver, codes | {-signal.SIGTERM} if not driver.proxy.requests else codes, 60)
