"""Names of properties that Kafka's client does not know. It ignores them, so a misspelled one has no effect."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from sink_job.api.field_errors import in_a_line

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

    from sink_job.api.sections.job_sections import KafkaSpec

_CUTOFF = 0.7


def unknown_properties(gateway: JavaGateway, kafka: KafkaSpec) -> list[str]:
    """A sentence for each property of the manifest that no client of the gateway's JVM (consumer, producer,
    admin client) knows, with the nearest known name. Classes in other properties may read it."""
    sections = dict.fromkeys(kafka.properties, "properties")
    sections |= {secret.name: "propertySecrets" for secret in kafka.property_secrets}
    if not sections:
        return []
    known = _known(gateway)
    return [_sentence(name, section, known) for name, section in sections.items() if name not in known]


def _known(gateway: JavaGateway) -> Collection[str]:
    """One call for all names: an element of a set of Java is a call each."""
    jvm = gateway.jvm
    clients = jvm.org.apache.kafka.clients
    names: Iterator[str] = (
        jvm.java.lang.String.join(" ", config.configNames())
        for config in (
            clients.consumer.ConsumerConfig,
            clients.producer.ProducerConfig,
            clients.admin.AdminClientConfig,
        )
    )
    return sorted({name for text in names for name in text.split(" ")})


def _sentence(name: str, section: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=_CUTOFF)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"spec.kafka.{section}: Kafka's client does not know {in_a_line(name)}, which has no effect on it{hint}"
