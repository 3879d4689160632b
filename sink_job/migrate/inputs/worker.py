"""The settings that a connector leaves to its worker: converters, brokers, and properties of the consumer.

All forms become worker properties; a value that is in a Secret becomes `${secrets:name:key}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sink_job.api.errors import InvalidConnector
from sink_job.migrate.consumer import WORKER
from sink_job.migrate.inputs.properties_text import read_properties

_ENVIRONMENT: Final = "CONNECT_"
_PEM: Final = {f"{WORKER}ssl.truststore.type": "PEM"}
_KUBERNETES = re.compile(r"(?m)^\s*kind\s*:")
_LOGIN: Final = "${login:%s}"
"""A JAAS login of this class, made of several values: a Secret to create."""
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def read_worker(text: str) -> dict[str, str]:
    """The settings of a worker: its `.properties`, the environment of Confluent's image (`CONNECT_…`), or Strimzi's
    `KafkaConnect`. Raises InvalidConnector."""
    if _KUBERNETES.search(text):
        from sink_job.migrate.inputs.yaml_text import read_yaml

        found = [each for each in read_yaml(text) if isinstance(each, dict) and each.get("kind") == "KafkaConnect"]
        if len(found) != 1:
            raise InvalidConnector(f"the worker's file has {len(found)} resources of the kind KafkaConnect: give one")
        return of_kafka_connect(found[0])
    settings = {_name(key): value for key, value in read_properties(text).items()}
    if not any(key in settings for key in ("bootstrap.servers", "value.converter", "group.id")):
        message = "the worker's file has none of bootstrap.servers, group.id and value.converter: give its properties"
        raise InvalidConnector(message)
    return settings


def _name(key: str) -> str:
    if not key.startswith(_ENVIRONMENT):
        return key
    name = key.removeprefix(_ENVIRONMENT).lower().replace("___", "\0").replace("__", "-")
    return name.replace("_", ".").replace("\0", "_")


def of_kafka_connect(document: Mapping[str, Any]) -> dict[str, str]:
    """The worker of Strimzi's `KafkaConnect`."""
    spec = _mapping(document.get("spec"))
    found = {key: str(value) for key, value in _mapping(spec.get("config")).items() if isinstance(value, str | int)}
    if isinstance(spec.get("bootstrapServers"), str):
        found["bootstrap.servers"] = spec["bootstrapServers"]
    tls, authentication = spec.get("tls"), _mapping(spec.get("authentication"))
    encrypted = isinstance(tls, dict)
    certificates = _mapping(tls).get("trustedCertificates") or []
    if certificates and isinstance(certificates[0], dict):
        first = certificates[0]
        key = first.get("certificate") or str(first.get("pattern", "ca.crt")).replace("*", "ca")
        found |= {**_PEM, f"{WORKER}ssl.truststore.certificates": f"${{secrets:{first.get('secretName', '')}:{key}}}"}
    kind = str(authentication.get("type", ""))
    if kind:
        found |= _authentication(kind, authentication)
        protocol = "SSL" if kind == "tls" else "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
        found[f"{WORKER}security.protocol"] = protocol
    elif encrypted:
        found[f"{WORKER}security.protocol"] = "SSL"
    return found


def _authentication(kind: str, authentication: Mapping[str, Any]) -> dict[str, str]:
    if kind == "tls":
        pair = _mapping(authentication.get("certificateAndKey"))
        secret = pair.get("secretName", "")
        return {
            f"{WORKER}ssl.keystore.type": "PEM",
            f"{WORKER}ssl.keystore.certificate.chain": f"${{secrets:{secret}:{pair.get('certificate', 'user.crt')}}}",
            f"{WORKER}ssl.keystore.key": f"${{secrets:{secret}:{pair.get('key', 'user.key')}}}",
        }
    mechanism = {"plain": "PLAIN", "oauth": "OAUTHBEARER"}.get(kind, kind.upper())
    return {f"{WORKER}sasl.mechanism": mechanism, f"{WORKER}sasl.jaas.config": _LOGIN % _MODULES.get(mechanism, _SCRAM)}


def of_msk_connect(document: Mapping[str, Any]) -> dict[str, str]:
    """The worker of `aws kafkaconnect describe-connector`."""
    cluster = _mapping(_mapping(document.get("kafkaCluster")).get("apacheKafkaCluster"))
    found = {}
    if isinstance(cluster.get("bootstrapServers"), str):
        found["bootstrap.servers"] = cluster["bootstrapServers"]
    encryption = _mapping(document.get("kafkaClusterEncryptionInTransit")).get("encryptionType")
    authentication = _mapping(document.get("kafkaClusterClientAuthentication")).get("authenticationType")
    if authentication == "IAM":
        found |= {
            f"{WORKER}security.protocol": "SASL_SSL",
            f"{WORKER}sasl.mechanism": "AWS_MSK_IAM",
            f"{WORKER}sasl.jaas.config": _LOGIN % "software.amazon.msk.auth.iam.IAMLoginModule",
            f"{WORKER}sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        }
    elif encryption == "TLS":
        found[f"{WORKER}security.protocol"] = "SSL"
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
