"""`s3sink simulate` with `format.envelope`."""

from __future__ import annotations

from tests.unit.simulate.steps import offsets, record, run, sink, write


def test_the_size_of_a_record_counts_its_envelope() -> None:
    rotation = {"maxBytes": 150}
    (alone,) = run(sink(rotation=rotation), write(record(0), record(1)))
    (enveloped,) = run(sink(rotation=rotation, format={"envelope": True}), write(record(0), record(1)))
    assert (offsets(alone["closed"]), offsets(enveloped["closed"])) == ([], [[0, 1]])


def test_an_envelope_in_parquet_is_simulated_with_the_schemas_of_values() -> None:
    settings = {"converter": "ConnectJson", "output": "Parquet", "envelope": True}
    chosen = sink(format=settings, partitioner={"schemaName": "Prefix"})
    schemas = [{"name": name, "fields": [{"name": "a", "type": "int32"}]} for name in "FFG"]
    (report,) = run(chosen, write(*(record(n, schema=each, key="k") for n, each in enumerate(schemas))))
    assert offsets(report["closed"]) == [[0, 1]]
    assert report["open"][0]["path"] == ["schema_name=G", "partition=0"]
