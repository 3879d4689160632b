"""Faults of drivers: kill, pause, termination, and takeover by other drivers."""

from __future__ import annotations

import os
import random
import signal
import time

from devtools.chaos.fault_points import REQUEST_SECONDS, TARGETS, any_point, kill_at, target, terminate_with
from devtools.chaos.scenario import FENCED, KILLED, OK, TRANSIENT, Finding, Scenario, sleep
from devtools.faults.s3_proxy import Hold
from devtools.processes import in_session

_EXIT_TIMEOUT_S = 30.0

# -- kills -----------------------------------------------------------------------------------------------------------


def kill(scenario: Scenario, rng: random.Random) -> None:
    """Kills a driver at any time, also during its start."""
    driver = scenario.running_driver(progress=rng.random() < 0.8)
    sleep(rng, 2)
    scenario.kill(driver)


def kill_at_request(scenario: Scenario, rng: random.Random) -> None:
    """Kills a driver at a request, before the store receives it or after its execution."""
    kill_at(scenario, scenario.running_driver(), rng, target(rng), any_point(rng), rng.randint(1, 3))


def kill_driver_alone(scenario: Scenario, rng: random.Random) -> None:
    """Kills only the driver process; its JVM and workers must end too."""
    driver = scenario.running_driver()
    sleep(rng, 1)
    driver.process.kill_alone()
    if not scenario.wait_until(lambda: not in_session(driver.process.pid), _EXIT_TIMEOUT_S):
        alive = in_session(driver.process.pid)
        scenario.kill(driver)
        raise Finding(
            f"{len(alive)} processes still run after the end of their driver: {_EXIT_TIMEOUT_S:g} s",
            driver.process.last_lines(),
        )
    scenario.expect_exit(driver, {*KILLED})


def kill_jvm(scenario: Scenario, rng: random.Random) -> None:
    """Kills the JVM, as the kernel does when it is out of memory."""
    driver = scenario.running_driver()
    for pid in driver.children(b"org.apache.spark")[:1]:
        os.kill(pid, signal.SIGKILL)
    scenario.expect_exit(driver, {TRANSIENT})


def kill_worker(scenario: Scenario, rng: random.Random) -> None:
    """Kills a Python worker; Spark retries its task."""
    driver = scenario.running_driver()
    sleep(rng, 1)
    workers = driver.children(b"pyspark")
    if workers:
        os.kill(rng.choice(workers), signal.SIGKILL)
        scenario.fired["workers killed"] += 1
    time.sleep(2)
    scenario.expect_survival(driver)


def late_request(scenario: Scenario, rng: random.Random) -> None:
    """Delays a request of a killed driver until the next driver has started."""
    among = tuple(target for target in TARGETS if target[0] != "UploadPart")
    driver = scenario.running_driver()
    hold = Hold()
    rule = driver.proxy.when(target(rng, among=among), hold, nth=rng.randint(1, 2))
    scenario.wait_until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    time.sleep(0.1)  # the proxy has then received its payload
    rule.remove()
    scenario.kill(driver)
    try:
        scenario.running_driver()
        sleep(rng, 1)
    finally:
        scenario.fired["late requests"] += bool(rule.fired)
        hold.release.set()
    time.sleep(1)


# -- stops -----------------------------------------------------------------------------------------------------------


def pause(scenario: Scenario, rng: random.Random) -> None:
    """Sends SIGSTOP and SIGCONT to the driver and all its child processes."""
    driver = scenario.running_driver()
    sleep(rng, 1)
    driver.process.pause()
    time.sleep(rng.choice((0.5, 3, 12)))
    driver.process.resume()
    time.sleep(1)
    scenario.expect_survival(driver)


def terminate(scenario: Scenario, rng: random.Random) -> None:
    """Terminates a driver at any time."""
    driver = scenario.running_driver(progress=rng.random() < 0.8)
    sleep(rng, 3)
    terminate_with(scenario, driver, {OK})


def terminate_in_request(scenario: Scenario, rng: random.Random) -> None:
    """Terminates a driver while the store does not reply."""
    driver = scenario.running_driver()
    hold = Hold()
    rule = driver.proxy.when(target(rng), hold, point=any_point(rng))
    scenario.wait_until(lambda: bool(rule.fired) or not driver.process.running(), REQUEST_SECONDS)
    try:
        terminate_with(scenario, driver, {OK})
    finally:
        hold.release.set()


def terminate_twice(scenario: Scenario, rng: random.Random) -> None:
    """Sends a second signal, which ends the driver at once."""
    driver = scenario.running_driver(progress=rng.random() < 0.8)
    os.kill(driver.process.pid, signal.SIGTERM)
    sleep(rng, 1)
    terminate_with(scenario, driver, {OK, TRANSIENT})


# -- takeovers -------------------------------------------------------------------------------------------------------


def takeover(scenario: Scenario, rng: random.Random) -> None:
    """Starts a second driver while the first one works."""
    first = scenario.running_driver()
    second = scenario.fleet.start()
    scenario.driver = second
    try:
        scenario.wait_for_progress(second)
        scenario.expect_fenced(first)
    finally:
        first.process.kill()


def takeover_of_paused(scenario: Scenario, rng: random.Random) -> None:
    """Pauses the first driver, often inside a request, while the second one works, and resumes it."""
    first = scenario.running_driver()
    hold = Hold()
    if rng.random() < 0.8:
        rule = first.proxy.when(target(rng), hold, point=any_point(rng), nth=rng.randint(1, 2))
        scenario.wait_until(lambda: bool(rule.fired) or not first.process.running(), REQUEST_SECONDS)
        rule.remove()
        scenario.fired["sleeps inside requests"] += bool(rule.fired)
    if not first.process.running():
        scenario.expect_survival(first)
        hold.release.set()
        return
    first.process.pause()
    second = scenario.driver = scenario.fleet.start()
    try:
        scenario.wait_for_progress(second)
        hold.release.set()
        first.process.resume()
        scenario.expect_fenced(first)
    finally:
        hold.release.set()
        first.process.kill()


def two_at_once(scenario: Scenario, rng: random.Random) -> None:
    """Starts two drivers together; the later claim wins, and one driver continues."""
    if scenario.driver is not None:
        scenario.kill(scenario.driver)
    both = scenario.fleet.start(cores=1), scenario.fleet.start(cores=1)
    if not scenario.wait_until(lambda: any(not each.process.running() for each in both), 240):
        raise Finding("two drivers of one sink run concurrently", both[0].process.last_lines())
    for each in both:
        if each.process.running():
            scenario.driver = each
        else:
            scenario.expect_exit(each, {FENCED, TRANSIENT})
    if all(each.code == FENCED for each in both):
        raise Finding("both of two concurrent drivers are fenced", both[0].process.last_lines())
