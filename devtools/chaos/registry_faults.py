"""Faults of the schema registry.

A driver asks for each id that it meets, once. So each fault starts another driver, or lets the producers use a
version of the schema that no driver has met. Expected exit codes: 7 if the registry denies access or has another schema
under an id, 75 after an outage that outlasts the retries; else the driver survives.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from devtools import bucket_listing
from devtools.chaos.drivers import DriverProcess
from devtools.chaos.load import Burst
from devtools.chaos.registry import UNKNOWN_ID, RegistryReply, RegistryRequest
from devtools.chaos.registry_values import VERSIONS
from devtools.chaos.scenario import CONFIGURATION, START_TIMEOUT_S, TRANSIENT, Scenario
from devtools.faults.proxy import Delay, Rule

_ASKED_S = START_TIMEOUT_S
"""Maximum wait in seconds for a driver's next question to the registry; then the fault has no effect."""
_EXIT_TIMEOUT_S = 90.0
_OUTAGE_TIMEOUT_S = 400.0


def registry_kill(scenario: Scenario, rng: random.Random) -> None:
    """Kills the registry and starts it again with its schemas."""
    registered, server = scenario.with_registry(), scenario.servers.registry
    scenario.running_driver()
    server.kill()
    try:
        driver = _asking(scenario, rng)
        time.sleep(rng.choice((0, 3, 10)))
    finally:
        registered.proxy.refuse()  # until it has its schemas
        server.start()
        registered.proxy.resume()
    _expect_progress(scenario, driver)


def registry_pause(scenario: Scenario, rng: random.Random) -> None:
    """Suspends the registry for some seconds."""
    scenario.running_driver()
    process = scenario.servers.registry.process
    assert process is not None
    process.pause()
    try:
        driver = _asking(scenario, rng)
        time.sleep(rng.choice((1, 5, 15)))
    finally:
        process.resume()
    _expect_progress(scenario, driver)


def registry_slow(scenario: Scenario, rng: random.Random) -> None:
    """Delays each request."""
    scenario.running_driver()
    rule = _every(scenario, Delay(rng.uniform(0.3, 4)))
    driver = _asking(scenario, rng)
    scenario.fired["registry requests delayed"] += len(rule.fired)
    _expect_progress(scenario, driver)
    rule.remove()


def registry_status(scenario: Scenario, rng: random.Random) -> None:
    """Replies 500, 503 or 429 for some seconds."""
    status = rng.choice((500, 503, 429))
    scenario.running_driver()
    rule = _every(scenario, RegistryReply.error(status))
    driver = _asking(scenario, rng)
    time.sleep(rng.choice((0, 4, 10)))
    rule.remove()
    scenario.fired[f"registry answers {status}"] += len(rule.fired)
    _expect_progress(scenario, driver)


def registry_denied(scenario: Scenario, rng: random.Random) -> None:
    """Replies 401 or 403, which ends the driver with 7; the next one has access again."""
    reply = RegistryReply.error(rng.choice((401, 403)))
    scenario.kill(scenario.running_driver())
    _expect_configuration_error(scenario, rng, _every(scenario, reply))


def registry_late(scenario: Scenario, rng: random.Random) -> None:
    """The registry does not know any id for some seconds, as a replica that lags behind: none is dropped."""
    scenario.running_driver()
    rule = _every(scenario, RegistryReply.error(404, UNKNOWN_ID))
    driver = _asking(scenario, rng)
    time.sleep(rng.uniform(0, 12))
    rule.remove()
    scenario.fired["late ids"] += len({each.schema_id for each in rule.fired})
    _expect_progress(scenario, driver)


def registry_changed(scenario: Scenario, rng: random.Random) -> None:
    """The registry has another schema under the ids of the ledger, which ends the next driver with 7; then it has the
    right ones again."""
    registered = scenario.with_registry()
    scenario.kill(scenario.running_driver())
    known = _known_ids(scenario)
    values = registered.values
    texts = {values.schema_id(version): values.text(VERSIONS[index - 1]) for index, version in enumerate(VERSIONS)}
    chosen = rng.choice(sorted(known & {*texts}) or [0])
    if chosen == 0:
        return
    answer = {"schema": texts[chosen]} | ({} if values.language == "AVRO" else {"schemaType": values.language})
    rule = registered.proxy.when(
        lambda request: request.schema_id == chosen and request.is_text, RegistryReply(200, answer), times=None
    )
    burst = Burst(records=100, seconds=1, active=(0,), versions=(chosen - values.schema_id(1) + 1,))
    scenario.loader.begin(f"x{rng.getrandbits(32):x}", rng.getrandbits(48), burst)
    _expect_configuration_error(scenario, rng, rule)


def registry_outage(scenario: Scenario, rng: random.Random) -> None:
    """Makes the registry unreachable for longer than the retries."""
    registered = scenario.with_registry()
    scenario.running_driver()
    scenario.servers.registry.kill()
    try:
        driver = _asking(scenario, rng)
        if registered.proxy.requests:
            scenario.fired["long outages of the registry"] += 1
            scenario.expect_exit(driver, {TRANSIENT}, _OUTAGE_TIMEOUT_S)
    finally:
        registered.proxy.refuse()
        scenario.servers.registry.start()
        registered.proxy.resume()


def _every(scenario: Scenario, fault: Delay | RegistryReply) -> Rule[RegistryRequest]:
    return scenario.with_registry().proxy.when(lambda request: request.schema_id is not None, fault, times=None)


def _asking(scenario: Scenario, rng: random.Random) -> DriverProcess:
    """A driver that has just asked the registry, or has had no reason to."""
    registered = scenario.with_registry()
    registered.proxy.forget()
    driver = scenario.driver
    unused = [version for version in VERSIONS if version not in registered.values.used]
    if driver is not None and driver.process.running() and unused and rng.random() < 0.5:
        _produce(scenario, rng, unused[0])
    else:
        driver = _another(scenario, rng)
    _wait_for_question(scenario, driver, lambda: bool(registered.proxy.requests))
    scenario.fired["questions to a registry with a fault"] += bool(registered.proxy.requests)
    return driver


def _another(scenario: Scenario, rng: random.Random) -> DriverProcess:
    """A new driver, with records to read."""
    if scenario.driver is not None:
        scenario.kill(scenario.driver)
    if not scenario.loader.busy:
        _produce(scenario, rng, rng.choice(sorted(scenario.with_registry().values.used) or [1]))
    driver = scenario.driver = scenario.fleet.start()
    scenario.wait_until(lambda: driver.records() > 0 or not driver.process.running(), START_TIMEOUT_S)
    return driver


def _produce(scenario: Scenario, rng: random.Random, version: int) -> None:
    active = tuple(sorted(rng.sample(range(scenario.partitions), min(3, scenario.partitions))))
    burst = Burst(records=200, seconds=1, active=active, transactional=0.2, aborted=0.0, versions=(version,))
    scenario.loader.begin(f"v{version}-{rng.getrandbits(32):x}", rng.getrandbits(48), burst)


def _wait_for_question(scenario: Scenario, driver: DriverProcess, asked: Callable[[], bool]) -> None:
    scenario.wait_until(lambda: asked() or not driver.process.running(), _ASKED_S)


def _expect_progress(scenario: Scenario, driver: DriverProcess) -> None:
    """The driver survives, or has exited with 75; it or the next one stores a record."""
    scenario.expect_survival(driver)
    scenario.wait_for_progress(scenario.running_driver(progress=False))


def _expect_configuration_error(scenario: Scenario, rng: random.Random, rule: Rule[RegistryRequest]) -> None:
    """The next driver ends with 7 if it meets the fault."""
    try:
        driver = _another(scenario, rng)
        _wait_for_question(scenario, driver, lambda: bool(rule.fired))
        if rule.fired:
            scenario.fired["wrong answers of the registry"] += 1
            scenario.expect_exit(driver, {CONFIGURATION}, _EXIT_TIMEOUT_S)
    finally:
        rule.remove()


def _known_ids(scenario: Scenario) -> set[int]:
    """The ids whose schema is in the ledger."""
    folder = f"/schemas/{scenario.topic}/"
    keys = bucket_listing.objects(scenario.client, scenario.bucket, ledger=True)
    names = [key.rpartition("/")[2].removesuffix(".json") for key in keys if folder in key]
    return {int(name) for name in names if name.isdecimal()}
