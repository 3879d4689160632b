"""The ConfigMap of a sink, and the settings that need another driver."""

from __future__ import annotations

from dataclasses import replace

from s3sink_operator import objects
from sink_job.api.allocation import Allocation
from sink_job.api.parser import load_sink, parse_sink
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import SETTINGS, document
from tests.operator.objects.manifests import OWNER, SECRETS, sink


def test_the_job_reads_the_sink_as_it_was_written_without_what_is_the_operators_business() -> None:
    asked = document(
        state="Stopped",
        restartNonce="x",
        deletionPolicy="Publish",
        offsets={"reset": {"nonce": "n", "to": "Earliest"}},
        driver={"podTemplate": {"spec": {"hostname": "secret"}}},
        **SECRETS,
    )
    text = objects.config_map(parse_sink(asked), OWNER, SETTINGS, attempt=1, memory=GI)["data"]["sink.yaml"]
    read = load_sink(text)
    assert read.reason_not_to_run() is None
    assert (read.name, read.namespace, read.spec.s3) == ("flights", "data", parse_sink(asked).spec.s3)
    assert read.spec.kafka == parse_sink(asked).spec.kafka
    assert read.object_settings() == parse_sink(asked).object_settings()
    assert "secret" not in text.replace("secret: ", "").replace("caSecret", "").replace("propertySecrets", "")


def test_two_ways_to_write_the_same_settings_are_one() -> None:
    one, other = (
        sink(rotation={"flushSize": 9, "maxOpenTime": written}, rounds=rounds)
        for written, rounds in (("60m", {"maxDelay": "10s"}), ("1h", {}))
    )
    assert objects.spec_hash(one, SETTINGS) == objects.spec_hash(other, SETTINGS)
    assert objects.job_manifest(one) == objects.job_manifest(other)


def test_the_operators_default_image_is_part_of_what_a_driver_is_started_with() -> None:
    newer = replace(SETTINGS, image="newer:2")
    assert objects.spec_hash(sink(), SETTINGS) != objects.spec_hash(sink(), newer)
    assert objects.spec_hash(sink(image="own:1"), SETTINGS) == objects.spec_hash(sink(image="own:1"), newer)


def test_number_and_memory_of_executors_are_no_settings_of_the_driver() -> None:
    few = sink(executor={"mode": "Cluster"})
    many = sink(executor={"mode": "Cluster", "instances": 4, "memory": {"max": "2Gi"}})
    assert objects.spec_hash(few, SETTINGS) == objects.spec_hash(many, SETTINGS)
    made = objects.config_map(many, OWNER, SETTINGS, attempt=1, memory=3 * GI)["data"]["allocation.json"]
    assert Allocation.parse(made) == Allocation(executors=4, memory=3 * GI, bounds="Auto, 512Mi to 2Gi")
