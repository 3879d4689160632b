"""A sink and the manifests that the operator makes of it."""

from __future__ import annotations

from typing import Any

from s3sink_operator import objects
from s3sink_operator.objects import PodShape
from s3sink_operator.types import Json
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS, SPEC, document

OWNER = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "name": "flights", "uid": "u", "controller": True}
SHAPE = PodShape(attempt=3, memory=2 * GI, spec_hash="abc", source_hash="def", generation=2)
SECRETS = {
    "kafka": SPEC["kafka"] | {"propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}]},
    "s3": {
        "bucket": "archive",
        "endpoint": "https://minio:9000",
        "credentials": {"secret": "keys"},
        "caSecret": {"secret": "ca", "key": "ca.crt"},
    },
}

AVRO = {
    "converter": "Avro",
    "registry": {
        "url": ["https://registry:8081"],
        "credentials": {"secret": "registry-login"},
        "caSecret": {"secret": "registry-ca", "key": "ca.crt"},
        "clientSecret": {"secret": "registry-client"},
    },
}


def sink(**spec: Any) -> Sink:
    return parse_sink(document(**spec))


def driver(**spec: Any) -> Json:
    return objects.driver_pod(sink(**spec), OWNER, SETTINGS, SHAPE)


def container(pod: Json) -> Json:
    return dict(next(each for each in pod["spec"]["containers"] if each["name"] == "s3sink"))


def config(**spec: Any) -> dict[str, str]:
    return dict(objects.config_map(sink(**spec), OWNER, SETTINGS, attempt=3, memory=2 * GI)["data"])
