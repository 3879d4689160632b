"""What a good manifest becomes."""

from __future__ import annotations

from sink_job.api.spec import Shaping, load_sink

MANIFEST = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  partitioner: {type: Hourly, timezone: UTC}
  rotation: {flushSize: 90, scheduleInterval: 1h30m}
  s3: {bucket: archive, partSize: 6Mi}
"""


def test_durations_become_milliseconds_and_sizes_bytes() -> None:
    spec = load_sink(MANIFEST).spec
    assert spec.rotation.schedule_interval == 5_400_000
    assert spec.s3.part_size == 6 * 1024 * 1024


def test_the_shaping_settings_survive_the_ledger() -> None:
    shaping = load_sink(MANIFEST).shaping()
    assert Shaping.model_validate_json(shaping.model_dump_json()) == shaping
