"""Spark itself creates executors on the API server, from the properties and the template that the operator writes.

Without a node the executors stay pending. The API server checks each pod, and the allocator of Spark ends the
application if pods are rejected.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.processes import wait_until
from tests.support.operator_fixture import CHILD, DRIVER, Operated

pytestmark = pytest.mark.cluster

PROGRAM = """
import json, sys
from pyspark import SparkConf, SparkContext
properties = json.loads(sys.stdin.readline())
context = SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(properties.items())))
sys.stdin.readline()
context.stop()
"""
_ONLY_IN_A_POD = ("spark.kubernetes.authenticate.", "spark.driver.port", "spark.driver.blockManager.port")


def test_the_api_server_accepts_the_executors_that_spark_creates(sink: Operated, tmp_path: Path) -> None:
    sink.apply(executor={"mode": "Cluster", "instances": 2})
    sink.kube.wait("Pod", DRIVER, lambda pod: pod)
    data = sink.kube.get("ConfigMap", CHILD)["data"]
    template = tmp_path / "executor.yaml"
    template.write_text(data["executor.yaml"])
    access = sink.kube.access
    assert access.token is not None
    properties = dict(line.split("=", 1) for line in data["spark.properties"].splitlines() if "=" in line)
    properties = {name: value for name, value in properties.items() if not name.startswith(_ONLY_IN_A_POD)} | {
        "spark.master": f"k8s://{access.server}",
        "spark.kubernetes.authenticate.caCertFile": str(access.authority),
        "spark.kubernetes.authenticate.oauthToken": access.token,
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.local.dir": str(tmp_path),
    }
    log = tmp_path / "log"
    with (
        log.open("w") as out,
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stderr=out, text=True) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(json.dumps(properties) + "\n")
        process.stdin.flush()
        try:
            wait_until(
                lambda: len(executors(sink)) == 2,
                "two executor pods",
                seconds=120,
                unless=lambda: None if process.poll() is None else log.read_text()[-4000:],
            )
        finally:
            process.stdin.close()
            process.wait(60)
    assert process.returncode == 0, log.read_text()[-4000:]


def executors(sink: Operated) -> list[str]:
    names = [each["metadata"]["name"] for each in sink.kube.items("Pod")]
    return [name for name in names if "-exec-" in name]
