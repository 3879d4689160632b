"""The operator's crash after every write, lost replies, busy servers, watches without events, and two at once.

The measure is a run without faults: the same objects in the end, and as many creates, applies and deletes of each kind.
Only the status may be written another time, where what happened in between was seen in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devtools.faults.kube_proxy import Delay, Drop, Hold, Kill, KubeFaults, Point, Reject, call
from devtools.kube.client import Json, Kube
from devtools.kube.control_plane import Cluster
from devtools.kube.fake_kubelet import Harness
from devtools.operator_process import Operator, operator
from devtools.processes import ServerFailedError, wait_until
from tests.support.operator_fixture import CHILD, DRIVER, SINK, Operated, changes, condition, is_ready, within

pytestmark = pytest.mark.cluster

STATUS = "apply s3sinks/status"


class Life:
    """A sink's life from its making to its end, step by step: what a user does, and when that is carried out."""

    def __init__(self, operated: Operated, faults: KubeFaults) -> None:
        self.operated = operated
        self._faults = faults
        self.snapshots: list[Json] = []
        self._edited: Json = {}
        self.steps: list[tuple[str, Callable[[], object], Callable[[], bool]]] = [
            ("create", self._create, lambda: self._runs(1)),
            ("edit", self._edit, lambda: self._runs(2)),
            ("restart", self._restart, lambda: self._runs(3)),
            ("stop", self._stop, self._has_stopped),
            ("delete", self._delete, self._is_gone),
        ]

    def _create(self) -> None:
        self.operated.apply(deletionPolicy="Publish")

    def _edit(self) -> None:
        self.operated.apply(deletionPolicy="Publish", rotation={"flushSize": 200})

    def _restart(self) -> None:
        self.operated.annotate(restart="1")

    def _stop(self) -> None:
        self.operated.apply(deletionPolicy="Publish", rotation={"flushSize": 200}, state="Stopped")

    def _delete(self) -> None:
        self.operated.kube.delete("S3Sink", SINK)

    def _runs(self, attempt: int) -> bool:
        found = self.operated.sink
        attempts = found.get("status", {}).get("attempts") or [{}]
        return is_ready(found) and attempts[0].get("number") == attempt and "endTime" not in attempts[0]

    def _has_stopped(self) -> bool:
        return condition(self.operated.sink, "Ready").get("reason") == "Stopped"

    def _is_gone(self) -> bool:
        """Whether nothing is left, and the proxy has counted the write after which it went: of the finalizer, which
        is written twice."""
        finalized = changes(self._faults, str(self.operated.kube.namespace))["patch s3sinks"]
        return finalized >= 2 and not self.operated.left()

    def live(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """All steps; `meanwhile` is called again and again while one is waited for."""
        for name, act, is_done in self.steps:
            act()

            def done(is_done: Callable[[], bool] = is_done) -> bool:
                meanwhile()
                return is_done()

            try:
                wait_until(done, f"the step {name}", seconds=60)
            except ServerFailedError as error:
                left = self.operated.left()
                status = self.operated.status if f"S3Sink/{SINK}" in left else None
                raise AssertionError(f"{error}; there are {left}; the status is {status}") from error
            self.snapshots.append(self.operated.snapshot())


@pytest.fixture
def life(kube: Kube, harness: Harness, faults: KubeFaults) -> Iterator[Life]:
    with harness.playing():
        yield Life(Operated(kube, harness), faults)


class Crashing:
    """An operator that is killed after its first write, and started again each time."""

    def __init__(self, begin: Callable[[], Operator], faults: KubeFaults, namespace: str) -> None:
        self._begin = begin
        self._faults = faults
        self._namespace = namespace
        self._running: Operator | None = None
        self.starts = 0

    def __call__(self) -> None:
        if self._running is None or not self._running.running():
            self._faults.resume()
            self._running = self._begin()
            self._faults.when(within(self._namespace), Kill(self._running), point="after")
            self.starts += 1


@pytest.fixture
def begin(tmp_path: Path, operator_kubeconfig: Path, namespace: str) -> Iterator[Callable[..., Operator]]:
    """Starts an operator through `faults`; it is not waited for."""
    started: list[Operator] = []

    def start(*flags: str) -> Operator:
        started.append(Operator(tmp_path, operator_kubeconfig, namespace, *flags, forked=True))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def without_faults(life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str) -> Counter[str]:
    """The writes of a life without faults, by kind."""
    process = begin()
    life.live()
    process.kill()
    made = changes(faults, namespace)
    faults.forget()
    return made


def assert_same(made: Counter[str], plain: Counter[str], *, more_status: int) -> None:
    """The same writes; of the status a few more."""
    made, plain = made.copy(), plain.copy()
    assert made.pop(STATUS) - plain.pop(STATUS) <= more_status
    assert made == plain


def test_an_operator_killed_after_any_write_reaches_the_same_result(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    """Every process does one write and is killed; the next one continues from the objects."""
    plain = without_faults(life, begin, faults, namespace)
    snapshots, life.snapshots = life.snapshots, []
    crashing = Crashing(begin, faults, namespace)
    life.live(crashing)
    made = changes(faults, namespace)
    assert_same(made, plain, more_status=4)
    assert life.snapshots == snapshots
    assert crashing.starts >= sum(made.values())


def test_writes_whose_replies_are_lost_are_not_done_twice(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    plain = without_faults(life, begin, faults, namespace)
    snapshots, life.snapshots = life.snapshots, []
    lost = faults.when(within(namespace), Drop(), point="after", times=None)
    begin()
    life.live()
    assert len(lost.fired) >= sum(plain.values())
    made = changes(faults, namespace)
    # What is deleted may be deleted once more by the HTTP client itself; the uid makes sure that it is the same pod.
    assert made["delete pods"] <= 2 * plain["delete pods"]
    made["delete pods"] = plain["delete pods"]
    assert_same(made, plain, more_status=6)
    assert life.snapshots == snapshots


@pytest.mark.parametrize(
    "rejection", [Reject(409), Reject(429, retry_after_s=1), Reject(500)], ids=["conflict", "too-many", "error"]
)
def test_a_server_that_rejects_every_second_write_only_takes_longer(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str, rejection: Reject
) -> None:
    calls = iter(range(1_000_000))
    every_second = faults.when(lambda each: within(namespace)(each) and next(calls) % 2 == 0, rejection, times=None)
    begin()
    life.live()
    assert every_second.fired
    made = changes(faults, namespace)
    assert (made["create pods"], made["delete pods"]) == (4, 4)
    assert made["apply configmaps"] <= 3


def test_a_retry_after_header_is_honoured(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    busy = faults.when(within(namespace), Reject(429, retry_after_s=3))
    begin()
    life.operated.apply()
    busy.wait()
    life.operated.wait_ready()


@pytest.mark.parametrize("point", ["before", "after"])
def test_slow_replies_only_take_longer(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str, point: Point
) -> None:
    """Every call about the sink waits, before it is done or before its answer comes."""
    plain = without_faults(life, begin, faults, namespace)
    snapshots, life.snapshots = life.snapshots, []
    slow = faults.when(lambda each: each.namespace == namespace, Delay(0.3), point=point, times=None)
    begin()
    life.live()
    assert len(slow.fired) > sum(plain.values())
    assert_same(changes(faults, namespace), plain, more_status=4)
    assert life.snapshots == snapshots


def test_changes_that_frozen_watches_miss_are_found_by_a_resync(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults
) -> None:
    process = begin("--resync", "1s")
    operated = life.operated
    before = operated.started()
    for resource in ("s3sinks", "pods", "configmaps"):
        faults.freeze(resource)
    operated.apply(rotation={"flushSize": 200})
    second = operated.next_driver(before)
    operated.kube.delete("Pod", DRIVER)
    operated.next_driver(second)
    operated.wait_ready()
    operated.kube.delete("ConfigMap", CHILD)
    operated.kube.wait("ConfigMap", CHILD, bool)
    assert process.running()


def test_a_status_of_an_outdated_sink_is_rejected_and_the_sink_is_read_again(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    """Before a status is written, the sink is not read: its resourceVersion is the precondition of the write."""
    begin()
    operated = life.operated
    before = operated.started()
    faults.freeze("s3sinks")
    operated.apply(rotation={"flushSize": 200})
    operated.harness.fail(DRIVER, 75)
    driver = operated.next_driver(before)
    assert driver["metadata"]["annotations"]["s3sink.io/generation"] == "2"
    # The proxy counts a request when it has sent the answer, so later than the pod exists.
    wait_until(lambda: changes(faults, namespace)["create pods"] == 2, "two created pods", seconds=60)


def test_a_sink_whose_deletion_no_watch_reported_is_forgotten(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults
) -> None:
    process = begin("--resync", "1s")
    life.operated.started()
    with faults.without_events("s3sinks", lambda event: event["type"] == "DELETED"):
        life.operated.kube.delete("S3Sink", SINK)
        life.operated.wait_gone()
    wait_until(lambda: 's3sink_operator_sinks{condition="Ready"' not in process.metrics(), "forgotten", seconds=60)


def test_watches_that_break_are_taken_up_again(life: Life, begin: Callable[..., Operator], faults: KubeFaults) -> None:
    begin()
    before = life.operated.started()
    faults.break_watches()
    life.operated.apply(rotation={"flushSize": 200})
    life.operated.next_driver(before)
    life.operated.wait_ready()


def test_an_old_list_after_a_restart_ends_no_driver(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    """The list is of a time when the sink was still to be made another; what it says is checked before any write."""
    first = begin()
    before = life.operated.started()
    first.kill()
    second = begin()
    second.wait_ready()
    old = faults.recorded("s3sinks")
    life.operated.apply(rotation={"flushSize": 200})
    after = life.operated.next_driver(before)
    life.operated.wait_ready()
    second.kill()
    made = changes(faults, namespace)
    faults.when(call("list s3sinks"), old)
    third = begin("--resync", "1s")
    third.wait_ready()
    looks = faults.count(call("get s3sinks"))
    faults.wait_for(lambda: faults.count(call("get s3sinks")) > looks + 3, "looks that ask the API server")
    assert life.operated.driver["metadata"]["uid"] == after["metadata"]["uid"]
    assert changes(faults, namespace) == made


def test_a_network_that_was_down_for_a_while_leaves_no_trace(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults
) -> None:
    process = begin("--resync", "1s")
    before = life.operated.started()
    faults.refuse()
    faults.break_watches()
    life.operated.apply(rotation={"flushSize": 200})
    faults.resume()
    life.operated.next_driver(before)
    life.operated.wait_ready(seconds=60)
    assert process.running()


def test_two_operators_at_once_create_one_driver_at_a_time(
    life: Life, begin: Callable[..., Operator], faults: KubeFaults, namespace: str
) -> None:
    """Without a Lease, which would not let them. Both may ask for the end of the same pod, each with its uid: it ends
    once, and the number of created pods proves that no other pod ended."""
    plain = without_faults(life, begin, faults, namespace)
    for process in [begin(), begin()]:
        process.wait_ready()
    life.live()
    made = changes(faults, namespace)
    assert made["create pods"] == plain["create pods"]
    assert plain["delete pods"] <= made["delete pods"] <= 2 * plain["delete pods"]
    assert sum(made.values()) <= 2 * sum(plain.values())


# --- the Lease


def test_one_of_two_replicas_works_and_the_other_takes_over_when_it_dies(
    tmp_path: Path, life: Life, operator_kubeconfig: Path, control_plane: Cluster, namespace: str, faults: KubeFaults
) -> None:
    flags = ["--lease-namespace", namespace]
    direct = control_plane.kubeconfig(namespace=namespace)
    with ExitStack() as stack:
        first = stack.enter_context(operator(tmp_path, operator_kubeconfig, namespace, *flags))
        wait_until(lambda: "s3sink_operator_leading 1.0" in first.metrics(), "leads", seconds=60)
        second = stack.enter_context(operator(tmp_path, direct, namespace, *flags))
        before = life.operated.started()
        assert "s3sink_operator_leading 1.0" in first.metrics()
        assert "s3sink_operator_leading 0.0" in second.metrics()
        first.kill()
        life.operated.apply(rotation={"flushSize": 200})
        wait_until(lambda: "s3sink_operator_leading 1.0" in second.metrics(), "takes over", seconds=60)
        life.operated.next_driver(before)
        life.operated.wait_ready()


def test_a_replica_that_stops_releases_its_lease_at_once(
    tmp_path: Path, life: Life, operator_kubeconfig: Path, namespace: str
) -> None:
    flags = ["--lease-namespace", namespace]
    with operator(tmp_path, operator_kubeconfig, namespace, *flags) as first:
        wait_until(lambda: "s3sink_operator_leading 1.0" in first.metrics(), "leads", seconds=60)
        assert first.terminate() == 0
        assert not life.operated.kube.get("Lease", "s3sink-operator")["spec"].get("holderIdentity")
        with operator(tmp_path, operator_kubeconfig, namespace, *flags):
            life.operated.started()


def test_a_replica_that_is_stopped_before_it_has_read_its_lists_releases_its_lease(
    tmp_path: Path, life: Life, operator_kubeconfig: Path, namespace: str, faults: KubeFaults
) -> None:
    held = faults.when(call("list pods"), Hold())
    with operator(tmp_path, operator_kubeconfig, namespace, "--lease-namespace", namespace) as first:
        held.wait()
        assert first.terminate() == 0
        assert not life.operated.kube.get("Lease", "s3sink-operator")["spec"].get("holderIdentity")


def test_a_replica_that_cannot_renew_its_lease_ends(
    tmp_path: Path, operator_kubeconfig: Path, namespace: str, faults: KubeFaults
) -> None:
    with operator(tmp_path, operator_kubeconfig, namespace, "--lease-namespace", namespace) as first:
        wait_until(lambda: "s3sink_operator_leading 1.0" in first.metrics(), "leads", seconds=60)
        faults.when(call("update leases"), Reject(500), times=None)
        assert first.wait(60) == 75
