"""What only real pods can show: the operator from its chart and image, drivers that start, are killed, grow, and
continue after their pod is deleted, operations in pods of their own, and exact objects after all of it.

Half a minute of a processor goes into each driver's start and first round, so tests that leave a sink as they found it
take the same one.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from devtools.kube.client import Json
from devtools.kube.node import NODE
from devtools.processes import wait_until
from s3sink_operator import names
from s3sink_operator.objects.pods import parse_quantity
from sink_job.api.report import FinalReport
from tests.e2e.node_fixture import CHART, NAMESPACE, RELEASE, PodSink, Shared, Site
from tests.support.operator_fixture import condition, reason_is

pytestmark = pytest.mark.e2e

Sinks = Callable[..., PodSink]


@pytest.fixture(scope="module")
def shared(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """What `running` takes its sink from."""
    shared = Shared(site, tmp_path_factory.mktemp("shared"))
    yield shared
    shared.end()


@pytest.fixture
def sink_of(site: Site, shared: Shared, namespace: str, tmp_path: Path) -> Sinks:
    """Makes a sink with a topic and a bucket of its own; the operator sees it when it is applied.

    A driver asks for a processor, of which the node has few: the sink that tests share ends before.
    """
    shared.end()
    return lambda **given: PodSink(site, namespace, tmp_path, **given)


@pytest.fixture
def running(shared: Shared) -> PodSink:
    """A sink that is Ready, without a failure behind it, and has copied all its records."""
    return shared.sink()


def test_the_charts_own_test_passes(site: Site) -> None:
    site.helm("test", RELEASE, "--namespace", NAMESPACE, "--timeout=90s")


def test_a_sink_that_is_applied_becomes_ready_and_its_records_arrive_each_once(running: PodSink) -> None:
    # Nothing of it offends the restricted profile, which is enforced and would be warned of as well.
    assert "warning" not in running.said.lower()
    wait = ["wait", "--for=condition=Ready", f"s3sink/{running.name}", "--namespace", running.namespace]
    running.site.kubectl(*wait, "--timeout=180s", check=True)
    running.wait_arrived()
    assert running.driver["status"]["containerStatuses"][0]["restartCount"] == 0
    running.verify()


def test_a_deleted_driver_pod_is_re_created_without_loss_or_duplicates(running: PodSink) -> None:
    before = running.driver
    running.produce(700)
    running.kube.delete("Pod", running.driver_name)
    running.wait_ready_again(before)
    running.wait_arrived()
    running.verify()


def test_a_driver_that_lives_on_after_its_pod_is_gone_is_fenced_and_doubles_nothing(running: PodSink) -> None:
    before = running.driver
    processes = running.site.cluster.processes_of(before)
    shim = _parent(min(processes))
    word = _termination_file(running, before)
    # As on an unreachable node: kubelet can end nothing there, and the driver sleeps through what follows.
    with _stopped([shim]):
        with _stopped(processes):
            running.kube.delete("Pod", running.driver_name, grace_s=0)
            running.produce(700)
            running.wait_ready_again(before)
            running.wait_arrived()
        running.produce(700)
        wait_until(lambda: bool(word.read_text()), "the final report of the fenced driver", seconds=120)
        ending = FinalReport.model_validate_json(word.read_text())
        assert ending.failure
        assert ending.failure.reason == "LedgerFenced", ending
        running.wait_arrived()
    running.verify()


def test_a_killed_driver_is_followed_by_one_that_resumes_from_the_ledger(running: PodSink) -> None:
    before = running.driver
    running.produce(700)
    for pid in running.site.cluster.processes_of(before):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait_ready_again(before)
    running.wait_arrived()
    assert running.last_ended()["exitCode"] == 137
    running.verify()


def test_offsets_reset_while_stopped_are_copied_again_below_a_prefix_of_their_own(running: PodSink) -> None:
    before = running.records()
    reset = {"nonce": "again", "to": "Earliest", "onExisting": "NewPrefix"}
    running.edit(state="Stopped", offsets={"reset": reset})
    stopped = running.wait(lambda sink: _is_reset(sink) and reason_is("Stopped")(sink), "offsets reset, and Stopped")
    status = stopped["status"]["offsetReset"]
    assert (status["nonce"], status["phase"], status["generation"]) == ("again", "Completed", 2), status
    assert status["recopiedOffsets"] == running.produced
    assert status["topicsDir"] != "topics"
    running.edit(state="Running")
    running.wait_ready()
    running.wait_arrived(status["topicsDir"])
    assert sorted(running.records()) == sorted(before)
    running.verify()


def test_an_oom_killed_driver_is_restarted_with_50_percent_more_memory(
    running: PodSink,
) -> None:
    before = running.driver
    limit = running.site.cluster.memory_limit_of(before)
    # Memory that is in no process's account, so that the kernel takes the JVM, which is the largest there.
    eater = f"import os; file = os.memfd_create('eater')\nfor _ in range({limit >> 20}): os.write(file, bytes(1 << 20))"
    words = ["exec", running.driver_name, "--namespace", running.namespace, "--", "python", "-c", eater]
    running.site.kubectl(*words)
    after = running.wait_ready_again(before)
    assert running.last_ended()["reason"] == "OOMKilled"
    assert running.site.cluster.memory_limit_of(after) >= limit * 3 // 2
    assert "minimum" in running.sink["status"]["memory"]
    running.produce(100)
    running.wait_arrived()
    running.verify()


def test_a_sink_deleted_with_the_policy_discard_leaves_no_upload_open(sink_of: Sinks) -> None:
    rotation = {"flushSize": 1_000_000, "maxOpenTime": "1h"}
    sink = sink_of(partitions=1, sections={"rotation": rotation}, settings={"deletionPolicy": "Discard"})
    # Two parts and more of one object, which stays open.
    sink.produce(1200, value_bytes=10_000)
    sink.apply()
    sink.wait_ready()
    wait_until(lambda: bool(sink.uploads()), "an open upload", seconds=120)
    assert names.FINALIZER in sink.sink["metadata"]["finalizers"]
    sink.kube.delete("S3Sink", sink.name)
    sink.kube.wait_gone("S3Sink", sink.name, seconds=180)
    assert not sink.uploads()
    assert sink.records() == []


def test_a_sink_in_a_deleted_namespace_publishes_its_open_objects(sink_of: Sinks) -> None:
    rotation = {"flushSize": 1_000_000, "maxOpenTime": "1h"}
    sink = sink_of(sections={"rotation": rotation}, settings={"deletionPolicy": "Publish"})
    sink.produce(700)
    sink.apply()
    sink.wait_ready()
    sink.wait(lambda found: found["status"]["progress"].get("records") == sink.produced, "all records are read")
    assert sink.records() == []
    # As a user does it: the namespace controller deletes the driver, and no other pod can be created.
    sink.kube.delete("Namespace", sink.namespace)
    sink.kube.wait_gone("Namespace", sink.namespace, seconds=180)
    assert sorted(sink.records()) == [(partition, number) for partition in range(2) for number in range(700)]
    assert not sink.uploads()
    sink.verify()


def test_a_sink_that_holds_more_grows_in_its_pod_without_a_restart(sink_of: Sinks) -> None:
    rotation = {"flushSize": 1_000_000, "maxOpenTime": "1h"}
    by_lane = {"type": "Field", "fields": ["lane"]}
    sink = sink_of(partitions=1, sections={"rotation": rotation, "s3": {"partSize": "25Mi"}, "partitioner": by_lane})
    # Ten objects at once, less than a part of each, so that one task holds back all of it.
    sink.produce(24_000, value_bytes=10_000)
    sink.apply()
    cluster = sink.site.cluster
    driver = sink.kube.wait("Pod", sink.driver_name, lambda pod: pod["status"]["phase"] == "Running", seconds=60)
    first = parse_quantity(driver["spec"]["containers"][0]["resources"]["limits"]["memory"]) or 0
    wait_until(lambda: cluster.memory_limit_of(driver) > first, "a higher limit of the container", seconds=150)
    # The status says it before the container has it, and more than one change may follow another.
    sink.wait(
        lambda each: (
            "lastChange" in each["status"].get("memory", {})
            and cluster.memory_limit_of(driver) == parse_quantity(each["status"]["memory"]["current"])
        ),
        "the memory of the status in the container",
    )
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]
    assert sink.driver["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_broken_default_image_takes_down_one_of_three_sinks_and_helm_rollback_recovers(
    site: Site, sink_of: Sinks
) -> None:
    # The node has few processors, and a driver asks for one.
    thin = {"podTemplate": {"spec": {"containers": [{"name": "s3sink", "resources": {"requests": {"cpu": "100m"}}}]}}}
    sinks = [sink_of(name=name, partitions=1, settings={"driver": thin}) for name in ("one", "two", "three")]
    for sink in sinks:
        sink.produce(300)
        sink.apply()
    for sink in sinks:
        sink.wait_ready()
    before = [sink.driver for sink in sinks]
    with site.upgraded("jobImage.tag=no-such-tag"):

        def halted() -> bool:
            return sum(bool(condition(sink.sink, "RolloutHalted")) for sink in sinks) == 2

        wait_until(halted, "two sinks that wait in a halted rollout", seconds=120)
        reasons = sorted(condition(sink.sink, "Ready")["reason"] for sink in sinks)
        assert reasons == ["ImagePullFailed", "Running", "Running"]
    for sink in sinks:
        sink.wait_ready()
    after = [sink.driver for sink in sinks]
    restarted = [pod["metadata"]["uid"] != old["metadata"]["uid"] for pod, old in zip(after, before, strict=True)]
    assert sum(restarted) == 1
    assert {pod["spec"]["containers"][0]["image"] for pod in after} == {before[0]["spec"]["containers"][0]["image"]}
    for sink in sinks:
        sink.produce(300)
        sink.wait_arrived()
        sink.verify()


def test_executors_run_in_pods_of_their_own_and_neither_their_loss_nor_the_drivers_loses_or_doubles_a_record(
    sink_of: Sinks,
) -> None:
    # The node has few processors, and a driver asks for one.
    thin = {"spark.kubernetes.executor.request.cores": "0.1"}
    sink = sink_of(sections={"executor": {"mode": "Cluster", "instances": 2}, "sparkConf": thin})
    sink.produce(1500)
    sink.apply()
    sink.wait_ready()
    sink.wait_arrived()
    driver, executors = sink.driver, sink.executors()
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in executors} == {driver["metadata"]["uid"]}
    lost = executors[0]["metadata"]["name"]
    sink.kube.delete("Pod", lost, grace_s=0)
    sink.produce(700)
    sink.wait_arrived()
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]
    sink.kube.delete("Pod", sink.driver_name, grace_s=0)
    sink.produce(700)
    sink.wait_ready_again(driver)
    sink.wait_arrived()
    assert not {each["metadata"]["name"] for each in executors} & {
        each["metadata"]["name"] for each in sink.executors()
    }
    with _without_driver_role(sink):
        sink.wait(reason_is("ExecutorsDenied"), "a driver that may not create executors")
    sink.wait(reason_is("Running"), "a driver that may")
    sink.verify()


def test_a_sink_survives_a_drained_node_an_executor_out_of_memory_and_a_lost_node(site: Site, sink_of: Sinks) -> None:
    # The node has few processors, and a driver asks for one.
    thin = {"spark.kubernetes.executor.request.cores": "0.1"}
    sink = sink_of(sections={"executor": {"mode": "Cluster", "instances": 1}, "sparkConf": thin})
    sink.produce(700)
    sink.apply()
    sink.wait_ready()
    sink.wait_arrived()
    _drained_and_uncordoned(sink)
    _executor_out_of_memory(sink)
    _node_lost_and_back(site, sink)
    sink.verify()


def _drained_and_uncordoned(sink: PodSink) -> None:
    before = sink.driver
    pods = "--pod-selector=app.kubernetes.io/name=s3sink"
    sink.site.kubectl("drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force", pods, check=True)
    try:
        sink.produce(700)
        found = sink.wait(reason_is("Unschedulable"), "a driver without a node")
        assert "Uncordon nodes" in condition(found, "Ready")["message"]
    finally:
        sink.site.kubectl("uncordon", NODE, check=True)
    sink.wait_ready_again(before)
    sink.wait_arrived()


def _executor_out_of_memory(sink: PodSink) -> None:
    """An executor whose container is above its limit: Spark starts another one, the driver is the same."""
    wait_until(lambda: len(_running(sink.executors())) == 1, "a single executor", seconds=120)
    driver, (executor,) = sink.driver, _running(sink.executors())
    limit = sink.site.cluster.memory_limit_of(executor)
    eater = f"import os; file = os.memfd_create('eater')\nfor _ in range({limit >> 20}): os.write(file, bytes(1 << 20))"
    name = executor["metadata"]["name"]
    sink.site.kubectl("exec", name, "--namespace", sink.namespace, "--", "python", "-c", eater)
    sink.produce(700)
    wait_until(lambda: name not in {each["metadata"]["name"] for each in sink.executors()}, "its end", seconds=120)
    sink.wait_arrived()
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]


def _node_lost_and_back(site: Site, sink: PodSink) -> None:
    """A node whose kubelet is gone, with driver and executor on it: both are replaced, and their processes, which
    continue until the kubelet is back, change nothing."""
    before = sink.driver
    with site.upgraded("operator.nodeLostTimeout=5s"):
        site.cluster.stop_kubelet()
        try:
            sink.produce(700)
            wait_until(lambda: _uid(sink) != before["metadata"]["uid"], "the deletion of the lost driver", seconds=180)
        finally:
            site.cluster.start_kubelet()
        sink.wait_ready_again(before)
    sink.wait_arrived()


def _uid(sink: PodSink) -> str | None:
    """The uid of the driver pod; None without one."""
    found = sink.kube.find("Pod", sink.driver_name)
    return None if found is None else str(found["metadata"]["uid"])


def test_offsets_are_reset_and_the_crd_is_upgraded_while_records_arrive(running: PodSink) -> None:
    first = running.produced
    running.produce(2000)
    crd = yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    crd["metadata"]["labels"]["upgraded"] = "yes"
    running.site.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=yaml.safe_dump(crd), check=True)
    running.produce(2000)
    running.edit(state="Stopped", offsets={"reset": {"nonce": "load", "to": "Earliest", "onExisting": "NewPrefix"}})
    running.produce(2000)
    stopped = running.wait(
        lambda sink: sink["status"].get("offsetReset", {}).get("nonce") == "load" and reason_is("Stopped")(sink),
        "offsets reset, and Stopped",
    )
    running.edit(state="Running")
    running.produce(2000)
    running.wait_ready()
    running.wait_arrived(stopped["status"]["offsetReset"]["topicsDir"])
    before = running.records()
    assert len(before) == len(set(before)) >= first
    running.verify()


def test_executors_follow_the_active_topic_partitions_in_both_directions_without_a_restart(sink_of: Sinks) -> None:
    rotation = {"flushSize": 1_000_000, "maxOpenTime": "1h"}
    window = {"name": "S3SINK_ACTIVITY_WINDOW_MS", "value": "20000"}
    driver_template = {"spec": {"containers": [{"name": "s3sink", "env": [window]}]}}
    thin = {"spec": {"containers": [{"name": "s3sink", "resources": {"requests": {"cpu": "100m"}}}]}}
    sections = {
        "rotation": rotation,
        "s3": {"partSize": "25Mi"},
        "driver": {"podTemplate": driver_template},
        "executor": {"mode": "Cluster", "instances": 1, "podTemplate": thin},
    }
    sink = sink_of(partitions=48, sections=sections)
    sink.produce(10, partitions=3)
    sink.apply()
    sink.wait_ready()
    driver, executor = sink.driver, sink.executors()[0]
    limit = partial(sink.site.cluster.memory_limit_of, executor)
    small = limit()
    # Less than a part of each topic-partition, so that its remainder is staged between two rounds. But enough for a
    # size that shrinks again: at 70 % of it.
    sink.produce(200, value_bytes=100_000)

    def is_settled(memory: Json, active: int) -> bool:
        """Whether the executor has a size that neither grows nor shrinks, for `active` topic-partitions whose records
        are all staged."""
        sink.produce(1, partitions=active)
        inputs = memory["inputs"]
        has_all = inputs["activePartitions"] == active and inputs["remainderBytes"] > 200 * 100_000
        recommended, current = (parse_quantity(memory[name]) or 0 for name in ("recommended", "current"))
        return has_all and 0.7 * current <= recommended <= 1.09 * current and current == limit()

    def settled(active: int) -> str:
        """Waits until the size for `active` topic-partitions is settled; the reason for its last change."""
        found = sink.wait(lambda sink: is_settled(sink["status"]["memory"], active), f"{active} active", seconds=600)
        return str(found["status"]["memory"]["lastChange"]["reason"])

    assert re.search(r"^grow: .*; \d+ active topic-partitions, \d+ per slot$", settled(48))
    large = limit()
    assert large > small
    assert re.search(r"^shrink: .*; \d+ active topic-partitions, \d+ per slot$", settled(3))
    assert limit() < large
    sink.scale(2)
    wait_until(lambda: len(_running(sink.executors())) == 2, "a second executor", seconds=120)
    new = next(pod for pod in sink.executors() if pod["metadata"]["uid"] != executor["metadata"]["uid"])
    assert sink.site.cluster.memory_limit_of(new) == limit()
    sink.scale(1)
    wait_until(lambda: len(sink.executors()) == 1, "a single executor", seconds=120)
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]
    pods = [sink.driver, *sink.executors()]
    assert executor["metadata"]["uid"] == pods[1]["metadata"]["uid"]
    assert not [each for pod in pods for each in pod["status"]["containerStatuses"] if each["restartCount"]]
    sink.edit(rotation=rotation | {"maxOpenTime": "1s"})
    sink.wait(lambda sink: sink["status"]["progress"].get("lag", {}).get("records") == 0, "no lag", seconds=600)
    sink.wait_arrived()
    sink.verify()


def _running(pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


@contextlib.contextmanager
def _without_driver_role(sink: PodSink) -> Iterator[None]:
    """As after an uninstall that does not keep the ClusterRole of drivers."""
    role = sink.kube.get("ClusterRole", "s3sink-driver")
    sink.kube.delete("ClusterRole", "s3sink-driver")
    try:
        yield
    finally:
        meta = {key: role["metadata"][key] for key in ("name", "labels", "annotations")}
        sink.kube.create(
            {**role, "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta}
        )


def _is_reset(sink: Json) -> bool:
    return "nonce" in sink["status"].get("offsetReset", {})


@contextlib.contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    """Processes that stand still meanwhile."""
    _signal(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))


def _termination_file(sink: PodSink, pod: Json) -> Path:
    """Where kubelet keeps what a container writes to its termination log."""
    folder: Path = sink.site.cluster.folder() / "kubelet" / "pods" / pod["metadata"]["uid"] / "containers"
    return next(path for path in folder.rglob("*") if path.is_file())
