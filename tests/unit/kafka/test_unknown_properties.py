"""Without properties in the manifest the client is not asked for its names. tests/data has those of the real client."""

from __future__ import annotations

from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.kafka.unknown_properties import unknown_properties


def test_a_manifest_without_properties_asks_no_client() -> None:
    spec = KafkaSpec.model_validate({"bootstrapServers": "kafka:9092", "topics": ["t"]})
    assert unknown_properties(None, spec) == []
