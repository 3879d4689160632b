"""The rules of `spec.tables`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import ABSENT, accepted, spec_errors

HERE = "spec.tables"
PARQUET: dict[str, object] = {"spec.format": {"converter": "ConnectJson", "output": "Parquet"}}
SQL = {"type": "Sql", "uri": "sqlite:////data/catalog.db", "warehouse": "s3://lake/tables"}
REST = {"type": "Rest", "uri": "https://catalog.example.com"}
GLUE = {"type": "Glue", "region": "eu-central-1", "warehouse": "s3://lake/tables"}
PARTITIONS = {"type": "GluePartitions", "region": "eu-central-1"}
HIVE_TABLES = {"type": "Hive", "uri": "thrift://metastore:9083"}
HIVE = {"type": "HivePartitions", "uri": "thrift://metastore:9083"}
ROLE = {"arn": "arn:aws:iam::123456789012:role/lake"}
LOGIN = {**REST, "credentials": {"secret": "login"}, "caSecret": {"secret": "ca", "key": "ca.crt"}}
TOPICS: dict[str, object] = {"spec.kafka.topics": ["a", "b"]}


def tables(*catalogs: object, name: str = "lake.{topic}") -> dict[str, object]:
    return {HERE: [{"catalog": each, "name": name} for each in catalogs]}


@pytest.mark.parametrize(
    "catalog",
    [
        SQL,
        REST,
        {**REST, "uri": "http://127.0.0.1:8181", "warehouse": "lake"},
        LOGIN,
        GLUE,
        {**GLUE, "assumeRole": ROLE},
        HIVE_TABLES,
        {**HIVE_TABLES, "warehouse": "s3a://lake/tables", "caSecret": {"secret": "ca", "key": "ca.crt"}},
    ],
)
def test_a_table_of_each_topic_is_accepted(catalog: object) -> None:
    assert len(accepted(PARQUET, TOPICS, tables(catalog)).spec.tables) == 1


def test_tables_have_avro_objects_without_hidden_partitions() -> None:
    avro: dict[str, object] = {"spec.format": {"converter": "ConnectJson", "output": "Avro"}}
    assert accepted(avro, TOPICS, tables(REST)).spec.tables
    (error,) = spec_errors({**avro, **daily("RecordField"), **HIDDEN})
    assert error.startswith("spec.tables[0].partitioning: Hidden needs format.output: Parquet: Avro objects have no")


@pytest.mark.parametrize("catalog", [PARTITIONS, HIVE])
@pytest.mark.parametrize("output", ["Json", "Bytes", "Parquet"])
def test_partitions_are_of_every_output_format(output: str, catalog: dict[str, object]) -> None:
    formats: dict[str, object] = {"converter": "Bytes" if output == "Bytes" else "ConnectJson", "output": output}
    assert accepted({"spec.format": formats}, tables(catalog)).spec.tables[0].catalog.type == catalog["type"]


@pytest.mark.parametrize(
    "field",
    [
        {"branch": "audit"},
        {"partitioning": "None"},
        {"onMissing": "Skip"},
        {"onReset": "NewTable"},
        {"onIncompatible": "NewTable"},
    ],
)
def test_tables_of_hives_kind_have_neither_branches_nor_specs(field: dict[str, object]) -> None:
    table = {"catalog": HIVE, "name": "lake.{topic}", **field}
    (error,) = spec_errors(PARQUET, {HERE: [table]})
    assert f"[0].{next(iter(field))}: has no effect with the type HivePartitions: remove it" in error


@pytest.mark.parametrize("field", ["onReset", "onIncompatible"])
def test_a_table_that_leaves_objects_out_cannot_be_continued(field: str) -> None:
    table = {"catalog": REST, "name": "lake.{topic}", "onMissing": "Skip"}
    (error,) = spec_errors(PARQUET, TOPICS, {HERE: [{**table, field: "NewTable"}]})
    assert error.startswith(f"spec.tables[0].{field}: NewTable cannot be used with onMissing: Skip: an object that")
    assert accepted(PARQUET, TOPICS, {HERE: [table]}).spec.tables


def test_one_topic_needs_no_placeholder() -> None:
    assert accepted(PARQUET, tables(REST, name="lake.flights")).spec.tables[0].name == "lake.flights"


WITHOUT = {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "a.*"}


HIDDEN: dict[str, object] = {HERE: [{"catalog": REST, "name": "lake.{topic}", "partitioning": "Hidden"}]}
ENVELOPE: dict[str, object] = {"spec.format": {"converter": "ConnectJson", "output": "Parquet", "envelope": True}}


def daily(extractor: str) -> dict[str, object]:
    return {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "timestampExtractor": extractor}}


def test_path_is_the_default_partitioning_and_main_the_default_branch() -> None:
    (table,) = accepted(PARQUET, tables(REST)).spec.tables
    assert (table.partitioning, table.branch) == ("Path", "main")


def test_tables_stop_at_a_reset_and_at_columns_that_do_not_fit_by_default() -> None:
    (table,) = accepted(PARQUET, tables(REST)).spec.tables
    assert (table.on_reset, table.on_incompatible) == ("Stop", "Stop")


def test_hidden_partitions_need_the_time_of_rows() -> None:
    for changes in ({**PARQUET, **daily("RecordField")}, {**ENVELOPE, **daily("Record")}):
        assert accepted(changes, HIDDEN).spec.tables[0].partitioning == "Hidden"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Hidden needs a path with a time"),
        (daily("Wallclock"), "Hidden needs the time of records: their rows have no wall clock"),
        (daily("Record"), "Hidden needs format.envelope for the extractor Record"),
    ],
)
def test_hidden_partitions_without_a_time_of_rows_are_rejected(changes: dict[str, object], expected: str) -> None:
    (error,) = spec_errors({**PARQUET, **HIDDEN, **changes})
    assert error.startswith(f"{HERE}[0].partitioning: {expected}")


@pytest.mark.parametrize("catalog", [REST, GLUE])
def test_a_catalog_without_tls_is_accepted_with_insecure(catalog: dict[str, object]) -> None:
    plain = {**catalog, "uri": "http://catalog.lake.svc:8181", "insecure": True}
    assert accepted({**PARQUET, **tables(plain)}).spec.tables[0].catalog.insecure


@pytest.mark.parametrize("branch", ["-x", "a b", "a/b", "", "x" * 101])
def test_other_names_of_branches_are_rejected(branch: str) -> None:
    table = {"catalog": REST, "name": "lake.{topic}", "branch": branch}
    (error,) = spec_errors({**PARQUET, HERE: [table]})
    assert "is not the name of a branch" in error or "empty" in error


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.format": {"output": "Json"}}, ": needs format.output: Parquet or Avro, not Json"),
        (tables(REST, SQL), ": lists the name lake.{topic} 2 times: use another name for each catalog"),
        ({**TOPICS, **tables(REST, name="lake.a")}, "[0].name: lake.a has no {topic}: each topic of the sink needs a"),
        ({**WITHOUT, **tables(REST, name="lake.a")}, "[0].name: lake.a has no {topic}: each topic of the sink needs a"),
        (tables({"type": "Sql", "uri": SQL["uri"]}), "[0].catalog.warehouse: is missing: the type Sql needs it"),
        (tables({**SQL, "warehouse": "/data"}), "[0].catalog.warehouse: is not in a bucket: use s3://bucket/folder"),
        (
            tables({**SQL, "warehouse": "s3://archive/topics/lake/"}),
            "[0].catalog.warehouse: is inside of spec.s3.topicsDir",
        ),
        (tables({**SQL, "credentials": {"secret": "a"}}), "[0].catalog.credentials: has no effect with the type Sql"),
        (tables({**SQL, "caSecret": {"secret": "a", "key": "b"}}), "[0].catalog.caSecret: has no effect with the type"),
        (tables({**REST, "region": "eu-central-1"}), "[0].catalog.region: has no effect with the type Rest, only with"),
        (
            tables({**REST, "assumeRole": ROLE}),
            "[0].catalog.assumeRole: has no effect with the type Rest",
        ),
        (tables({"type": "Rest"}), "[0].catalog.uri: is missing: the type Rest needs it"),
        (tables({**GLUE, "region": None}), "[0].catalog.region: is missing: the type Glue needs it"),
        (tables({**GLUE, "warehouse": None}), "[0].catalog.warehouse: is missing: the type Glue needs it"),
        (tables({**GLUE, "uri": "http://c"}), "[0].catalog.uri: is not encrypted: use https://, or set catalog.in"),
        (tables({"type": "Hive"}), "[0].catalog.uri: is missing: the type Hive needs it"),
        (tables({**HIVE_TABLES, "uri": "thrift://a:1,thrift://b:1"}), "[0].catalog.uri: is not for the type Hive: use"),
        (tables({**HIVE, "uri": "thrift://a:1/x"}), "[0].catalog.uri: is not for the type HivePartitions: use thrift"),
        (tables({**HIVE_TABLES, "uri": "https://m"}), "[0].catalog.uri: is not for the type Hive: use thrift://host:"),
        (
            tables({**HIVE_TABLES, "warehouse": "hdfs://x"}),
            "[0].catalog.warehouse: is not in a bucket: use s3://bucket",
        ),
        (tables({**HIVE_TABLES, "credentials": {"secret": "a"}}), "[0].catalog.credentials: has no effect with the"),
        (tables(HIVE_TABLES, name="Lake.{topic}"), "[0].name: is not a name for the type Hive: use database.name in"),
        (tables(GLUE, name="Lake.{topic}"), "[0].name: is not a name for the type Glue: use database.name in"),
        (tables(GLUE, name="a.b.{topic}"), "[0].name: is not a name for the type Glue: use database.name in"),
        (
            tables({**HIVE, "uri": "https://c"}),
            "[0].catalog.uri: is not for the type HivePartitions: use thrift://host:9083",
        ),
        (tables({"type": "HivePartitions"}), "[0].catalog.uri: is missing: the type HivePartitions needs it"),
        (tables({**HIVE, "credentials": {"secret": "a"}}), "[0].catalog.credentials: has no effect with the type Hive"),
        (tables(HIVE, name="a.b.{topic}"), "[0].name: is not a name for the type HivePartitions: use database.name"),
        (tables({**PARTITIONS, "region": None}), "[0].catalog.region: is missing: the type GluePartitions needs it"),
        (tables({**PARTITIONS, "warehouse": "s3://a/b"}), "[0].catalog.warehouse: has no effect with the type Glue"),
        (tables(PARTITIONS, name="a.b.{topic}"), "[0].name: is not a name for the type GluePartitions: use"),
        (tables({**SQL, "insecure": True}), "[0].catalog.insecure: has no effect with the type Sql, only with Rest"),
        (tables({**SQL, "uri": "sqlite:///:memory:"}), "[0].catalog.uri: is not for the type Sql: use sqlite:///"),
        (tables({**SQL, "uri": "https://c"}), "[0].catalog.uri: is not for the type Sql: use sqlite:///"),
        (tables({**REST, "uri": "sqlite:///a"}), "[0].catalog.uri: is not for the type Rest: use https://host"),
        (tables({**REST, "uri": "http://c"}), "[0].catalog.uri: is not encrypted: use https://, or set catalog.in"),
        (tables({**REST, "uri": "https://u:secret@c"}), "contains a login, which the manifest must not have"),
        (tables(REST, name="flights"), "is not the name of a table: use namespace.name"),
        (tables(REST, name="lake.a-b"), "is not the name of a table: use namespace.name"),
    ],
)
def test_other_tables_are_rejected(changes: dict[str, object], expected: str) -> None:
    (error,) = spec_errors({**PARQUET, **tables(REST), **changes})
    assert error.startswith(HERE)
    assert expected in error
    assert "secret" not in error


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.s3.assumeRole": ROLE}, "spec.tables: cannot be used with spec.s3.assumeRole"),
        (
            {"spec.s3.encryption": {"type": "Customer", "customerKey": {"secret": "a", "key": "b"}}},
            "spec.tables: cannot be used with spec.s3.encryption.type Customer",
        ),
    ],
)
def test_tables_without_readers_are_rejected(changes: dict[str, object], expected: str) -> None:
    assert any(expected in error for error in spec_errors({**PARQUET, **tables(REST), **changes}))
    accepted({**tables(HIVE), **changes})
