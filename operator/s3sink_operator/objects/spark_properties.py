"""The Spark properties of a sink in Cluster mode: Spark's client mode, inside of the driver pod."""

from __future__ import annotations

from s3sink_operator import names
from s3sink_operator.objects.pod_template import own_container, requested_cpu
from s3sink_operator.objects.rbac import service_account_of
from s3sink_operator.types import Settings
from sink_job.api import memory_budget
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import MI

API_SERVER = "https://kubernetes.default.svc"
ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
CONFIG_DIR = "/etc/s3sink"
PROPERTIES = "spark.properties"
EXECUTOR_TEMPLATE = "executor.yaml"
PROPERTIES_FILE = f"{CONFIG_DIR}/{PROPERTIES}"
EXECUTOR_TEMPLATE_FILE = f"{CONFIG_DIR}/{EXECUTOR_TEMPLATE}"
DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079


def spark_properties(
    sink: Sink, settings: Settings, *, attempt: int, memory: int, executors: int | None = None
) -> dict[str, str]:
    """The properties besides those of the session. `memory`: bytes of one executor in total. `executors`: None for
    those of the spec.

    The driver substitutes its address, $POD_IP, in `spark.driver.host`. Spark generates the secret of
    `spark.authenticate` for each application and passes it to executors through their environment.
    """
    spec = sink.spec
    overhead = memory_budget.executor_overhead(memory, cores=spec.executor.cores)
    application = {
        "spark.master": f"k8s://{API_SERVER}",
        "spark.submit.deployMode": "client",
        "spark.app.id": names.attempt_name(sink.name, attempt),
        "spark.app.name": f"s3sink-{sink.sink_id}",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.host": "${POD_IP}",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.executor.instances": str(executors or spec.executor.instances),
        "spark.executor.cores": str(spec.executor.cores),
        "spark.executor.memory": f"{memory_budget.heap_of(spec.executor.cores) // MI}m",
        "spark.executor.memoryOverhead": f"{overhead // MI}m",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.speculation": "false",
    }
    ours = application | _kubernetes_properties(sink, settings, attempt=attempt)
    return dict(sorted((spec.spark_conf | ours).items()))


def _kubernetes_properties(sink: Sink, settings: Settings, *, attempt: int) -> dict[str, str]:
    """How Spark makes the executor pods.

    Executors get their settings from the driver and have no persistent volumes and no service, so the driver requires
    permissions for pods only.
    """
    spec = sink.spec
    properties = {
        "spark.kubernetes.namespace": sink.namespace,
        "spark.kubernetes.driver.pod.name": names.driver_pod_name(sink.name),
        "spark.kubernetes.executor.podNamePrefix": names.attempt_name(sink.name, attempt),
        "spark.kubernetes.executor.podTemplateFile": EXECUTOR_TEMPLATE_FILE,
        "spark.kubernetes.executor.podTemplateContainerName": "s3sink",
        "spark.kubernetes.container.image": spec.image or settings.image,
        "spark.kubernetes.container.image.pullPolicy": _pull_policy(sink, settings),
        "spark.kubernetes.authenticate.executor.serviceAccountName": service_account_of(sink),
        "spark.kubernetes.authenticate.oauthTokenFile": f"{ACCOUNT_DIR}/token",
        "spark.kubernetes.authenticate.caCertFile": f"{ACCOUNT_DIR}/ca.crt",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
    }
    if cpu := requested_cpu(spec.executor.pod_template):
        properties["spark.kubernetes.executor.request.cores"] = cpu
    if spec.image_pull_secrets:
        secrets = ",".join(reference.name for reference in spec.image_pull_secrets)
        properties["spark.kubernetes.container.image.pullSecrets"] = secrets
    return properties


def _pull_policy(sink: Sink, settings: Settings) -> str:
    """That of the pod template, which Spark would replace."""
    return str(own_container(sink.spec.executor.pod_template).get("imagePullPolicy") or settings.image_pull_policy)


def properties_file(properties: dict[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text.startswith(" ") else text
