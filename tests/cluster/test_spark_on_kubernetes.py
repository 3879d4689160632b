"""Spark itself creates executors on the API server, from the properties and the template that the operator writes.

Without a node the executors stay pending. The API server checks each pod, and the driver reports what it rejects.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devtools.kube.client import ApiError, Json
from devtools.processes import wait_until
from sink_job.api.errors import TooManyExecutorFailures
from tests.support.operator_fixture import CHILD, DRIVER, Operated, report

pytestmark = pytest.mark.cluster

PROGRAM = """
import json, logging, sys, threading
logging.basicConfig(level=logging.INFO)
logging.getLogger("sink_job.spark.jvm").setLevel(logging.DEBUG)
from sink_job.spark.conf import SparkSettings
from sink_job.spark.executor_log import ExecutorLog, failure_limit
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.session import session
config = ExecutorConfig.of(json.loads(sys.stdin.readline()))
log = ExecutorLog(failure_limit(config.properties, config.instances))
settings = SparkSettings(app_name="test", jars=[], cluster=config)
stopped = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stopped.set()), daemon=True).start()
with session(settings, executor_log=log) as spark:
    jvm = spark._gateway.proc
    while not stopped.wait(0.1) and jvm.poll() is None:
        print(json.dumps(log.rejection), flush=True)
    sys.exit(jvm.poll() or 0)
"""
_ONLY_IN_A_POD = ("spark.kubernetes.authenticate.", "spark.driver.port", "spark.driver.blockManager.port")


class Application:
    """A Spark application of the sink that runs on this machine, with executors on the API server."""

    def __init__(self, sink: Operated, folder: Path) -> None:
        self._log, self._shown = folder / "log", folder / "rejections"
        with self._log.open("w") as log, self._shown.open("w") as shown:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=shown, stderr=log, text=True
            )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(properties_of(sink, folder)) + "\n")
        self.process.stdin.flush()

    @property
    def rejection(self) -> str | None:
        """What the driver would report now."""
        lines = self._shown.read_text().split("\n")[:-1]
        return None if not lines else json.loads(lines[-1])

    @property
    def is_running(self) -> bool:
        """Whether the session is complete."""
        return bool(self._shown.read_text())

    @property
    def attempts(self) -> int:
        """How often Spark failed to create an executor."""
        return self._log.read_text().count("Failed to create executor pod")

    def failure(self) -> str | None:
        """The end of the log, if the application has ended."""
        return None if self.process.poll() is None else self._log.read_text()[-4000:]

    def stop(self) -> None:
        """Ends the application. Fails if it had ended before."""
        ended = self.failure()
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(60)
        assert (code, ended) == (0, None), self._log.read_text()[-4000:]


StartSpark = Callable[..., Application]


def properties_of(sink: Operated, folder: Path) -> dict[str, str]:
    """The properties of the operator, for a driver outside of the cluster."""
    data = sink.kube.get("ConfigMap", CHILD)["data"]
    template = folder / "executor.yaml"
    template.write_text(data["executor.yaml"])
    access = sink.kube.access
    assert access.token is not None
    properties = dict(line.split("=", 1) for line in data["spark.properties"].splitlines() if "=" in line)
    return {name: value for name, value in properties.items() if not name.startswith(_ONLY_IN_A_POD)} | {
        "spark.master": f"k8s://{access.server}",
        "spark.kubernetes.authenticate.caCertFile": str(access.authority),
        "spark.kubernetes.authenticate.oauthToken": access.token,
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
    }


@pytest.fixture
def start_spark(sink: Operated, tmp_path: Path) -> Iterator[StartSpark]:
    """Applies a sink with two executors. Starts its application, in a namespace with this quota of pods."""
    started: list[Application] = []

    def start(pods: int | None = None) -> Application:
        sink.apply(executor={"mode": "Cluster", "instances": 2})
        sink.kube.wait("Pod", DRIVER, lambda pod: pod["status"].get("phase") == "Running")
        if pods is not None:
            sink.kube.create(quota(pods))
            sink.kube.wait("ResourceQuota", "few", lambda found: found.get("status", {}).get("used"), what="its use")
        started.append(Application(sink, tmp_path))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait(60)


def quota(pods: int) -> Json:
    spec = {"hard": {"pods": str(pods)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec}


def executors(sink: Operated) -> list[str]:
    names = [each["metadata"]["name"] for each in sink.kube.items("Pod")]
    return [name for name in names if "-exec-" in name]


def test_the_api_server_accepts_the_executors_that_spark_creates(sink: Operated, start_spark: StartSpark) -> None:
    spark = start_spark()
    wait_until(lambda: len(executors(sink)) == 2, "two executor pods", seconds=120, unless=spark.failure)
    assert spark.rejection is None
    spark.stop()


def test_executors_beyond_a_quota_are_reported_and_follow_when_it_is_raised(
    sink: Operated, start_spark: StartSpark
) -> None:
    """The driver and one executor fit. Spark's own limit would end the application after four rejections."""
    spark = start_spark(pods=2)
    wait_until(lambda: spark.rejection is not None, "a rejection", seconds=120, unless=spark.failure)
    rejection = str(spark.rejection)
    assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in rejection
    sink.harness.run(executors(sink)[0])
    sink.harness.report(DRIVER, report(executor_rejection=rejection))
    ready = sink.wait_reason("ExecutorsRejected")
    assert ready["status"] == "False"
    assert rejection in ready["message"]
    wait_until(lambda: spark.attempts > 6, "more rejections than Spark's own limit", seconds=60, unless=spark.failure)
    sink.kube.patch("ResourceQuota", "few", {"spec": quota(pods=3)["spec"]})
    wait_until(lambda: len(executors(sink)) == 2, "the second executor", seconds=60, unless=spark.failure)
    spark.stop()


def test_executors_that_fail_again_and_again_end_the_driver_with_their_exit_code(
    sink: Operated, start_spark: StartSpark
) -> None:
    """The driver counts them itself, since Spark would count rejected pods, too."""
    spark = start_spark()
    wait_until(lambda: spark.is_running, "the session", seconds=120, unless=spark.failure)

    def fail_all() -> bool:
        for name in executors(sink):
            with contextlib.suppress(ApiError):  # Spark has deleted it
                sink.harness.fail(name, 1)
        return spark.process.poll() is not None

    wait_until(fail_all, "the end of the application", seconds=120)
    assert spark.process.returncode == TooManyExecutorFailures.exit_code, spark.failure()
