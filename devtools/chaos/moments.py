"""Moments at which a fault happens: at a request of a driver, before the store gets it or after it has done it."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

from devtools.chaos.drivers import Driver
from devtools.chaos.world import World
from devtools.faults.s3_proxy import Kill, Point
from devtools.faults.s3_requests import Request

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

REQUEST_SECONDS = 8.0
"""How long a fault waits for its request; then it happens at once."""


def target(rng: random.Random, *, among: tuple[tuple[str, str], ...] = TARGETS) -> Callable[[Request], bool]:
    kind, part = rng.choice(among)
    return lambda request: request.kind == kind and part in request.key and "/probe/" not in request.key


def any_point(rng: random.Random) -> Point:
    return "before" if rng.random() < 0.5 else "after"


def kill_at(
    world: World, driver: Driver, rng: random.Random, matches: Callable[[Request], bool], point: Point, nth: int
) -> bool:
    rule = driver.proxy.when(matches, Kill(driver.process), point=point, nth=nth)
    world.until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    rule.remove()
    world.killed(driver)
    driver.proxy.resume()
    world.fired["kills at requests"] += bool(rule.fired)
    return bool(rule.fired)


def terminated(world: World, driver: Driver, codes: set[int]) -> None:
    if driver.process.running():
        os.kill(driver.process.pid, signal.SIGTERM)
    # Python's own default, while the interpreter is starting.
    world.ended(driver, codes | {-signal.SIGTERM} if not driver.proxy.requests else codes, 60)
