"""Changed defaults for all sinks reach drivers as a changed image does: one after the other, while they stay Ready."""

from __future__ import annotations

from s3sink_operator.config.sink_defaults import SinkDefaults
from tests.operator.rollout.fleet import OLD, Fleet


def defaults(disk: str) -> SinkDefaults:
    return SinkDefaults.model_validate({"nodeSelector": {"disk": disk}}, by_alias=True, by_name=False)


def disks(fleet: Fleet) -> list[str | None]:
    """The node selector of each driver."""
    drivers = [cluster.driver for cluster in fleet.sinks.values()]
    return [None if driver is None else driver["spec"].get("nodeSelector", {}).get("disk") for driver in drivers]


def broken_rollout() -> Fleet:
    """A fleet with other defaults, since which the kubelet starts no driver, after some minutes."""
    fleet = Fleet(4)
    fleet.broken = set(fleet.sinks)
    fleet.start_operator(OLD, defaults("none"))
    fleet.run(minutes=2)
    return fleet


def test_changed_defaults_restart_one_ready_driver_after_the_other() -> None:
    fleet = Fleet(4)
    for disk in ("ssd", "nvme"):
        fleet.start_operator(OLD, defaults(disk))
        fleet.run(minutes=10)
        assert disks(fleet) == [disk] * 4
    assert fleet.worst == 1


def test_defaults_with_which_a_driver_does_not_start_halt_the_rollout() -> None:
    fleet = broken_rollout()
    assert len(fleet.not_ready()) == 1
    assert len(fleet.with_condition("RolloutHalted")) == 3


def test_a_changed_field_that_restarts_nothing_does_not_bring_changed_defaults() -> None:
    fleet = broken_rollout()
    fleet.sinks[fleet.with_condition("RolloutPending")[0]].edit(deletionPolicy="Publish")
    fleet.run(minutes=5)
    assert len(fleet.not_ready()) == 1


def test_a_changed_spec_brings_changed_defaults_at_once() -> None:
    fleet = broken_rollout()
    name = fleet.with_condition("RolloutPending")[0]
    fleet.broken = set()
    fleet.sinks[name].edit(rotation={"flushSize": 7})
    fleet.run()
    driver = fleet.sinks[name].driver
    assert driver
    assert driver["spec"]["nodeSelector"] == {"disk": "none"}
