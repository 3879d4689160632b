"""Converted public configurations in `s3sink simulate`: the objects are where docs/semantics.md puts them."""

from __future__ import annotations

import json

import pytest

from sink_job.api.parser import load_sink
from sink_job.cli.simulate import simulate
from tests.unit.migrate.connector_cases import connector_cases

CASES = {case.name: case for case in connector_cases()}
NOON_MS = 1_706_702_400_000
"""31 January 2024, 12:00 UTC."""
DAY = "year=2024/month=01/day=31"


@pytest.mark.parametrize(
    ("name", "topic", "count", "folder"),
    [
        ("bank-transactions", "corepay.bank.transactions", 10, "raw/{t}/partition=0"),
        ("topics-dir-is-a-slash", "topic1", 1, "{t}/partition=0"),
        ("trade-events", "trade-failed", 10, "topics/{t}/partition=0"),
        ("json-with-numbers", "subscriptions_confluent", 10, "confluent/{t}/partition=0"),
        ("strimzi-customers", "inventory-stream.public.customers", 3, "topics/{t}/partition=0"),
        ("finance-as-properties", "finance-data", 498, "topics/{t}/partition=0"),
        ("car-sales-without-region", "carsales", 3, "topics/{t}/partition=0"),
        ("interval-without-partitioner", "banking_server.public.transactions", 1, "topics/{t}/partition=0"),
        ("weather-from-the-start", "weather_data", 1, "topics/{t}/partition=0"),
        ("provider-of-ones-own", "biogroupit_gpss_schema_history", 3, "topics/{t}/partition=0"),
        ("pagila-addresses", "pagila.public.alt.address", 100, "topics/{t}/partition=0"),
        ("time-settings-without-partitioner", "payment.transactions.raw", 500, "landing/transactions/{t}/partition=0"),
        ("meter-usage-record-field", "meter_usage_live", 10, "raw/kafka/{t}/{t}/2024/01/31/12"),
        ("localstack-record-time", "events", 3, f"topics/{{t}}/{DAY}/hour=12"),
        ("cdc-two-topics", "cdc.public.orders", 100, f"topics/{{t}}/{DAY}/hour=12"),
        ("daily-with-unknown-keys", "cdc.commerce.users", 3, f"topics/{{t}}/{DAY}"),
        ("retail-daily-record", "user-events", 10, f"raw-data/{{t}}/{DAY}"),
        ("names-to-fill-in", "iot-events", 1000, f"topics/{{t}}/{DAY}/hour=12"),
        ("payments-by-date-and-hour", "payments.public.orders", 1000, "cdc/{t}/dt=2024-01-31/hr=12"),
        ("gzip-minutes-for-months", "AGGREGATION_EVENT_JSON", 3000, "topics/{t}/2024-00-31/12"),
        ("values-of-the-environment", "mongo.AI.chats", 1, f"topics/{{t}}/{DAY}/hour=12"),
        ("reference-string-converter", "log-lines", 1000, "topics/{t}/partition=0"),
    ],
)
def test_a_converted_connector_closes_at_its_flush_size_under_the_connector_s_key(
    name: str, topic: str, count: int, folder: str
) -> None:
    value = {"timestamp": NOON_MS, "eventTimestamp": NOON_MS}
    one = {"topic": topic, "partition": 0, "timestamp": NOON_MS}
    records = [
        {**one, "offset": n, **({"value": value} if name[:9] != "reference" else {"value": "a"})} for n in range(count)
    ]
    steps = [
        json.dumps({"advanceClockMs": NOON_MS}).encode(),
        json.dumps({"write": records[:-1]}).encode(),
        json.dumps({"write": records[-1:]}).encode(),
    ]
    *before, last = simulate(load_sink(CASES[name].output), steps, name=name)
    assert [each.closed for each in before] == [[]]
    extension = {"gzip": ".json.gz", "refe": ".log"}.get(name[:4], ".json")
    assert [each.key for each in last.closed] == [f"{folder.format(t=topic)}/{topic}+0+0000000000{extension}"]
    assert last.errors == []


def test_a_path_by_a_missing_field_is_a_data_error_as_with_the_connector() -> None:
    sink = load_sink(CASES["meter-usage-record-field"].output)
    record = {"topic": "meter_usage_live", "partition": 0, "offset": 0, "value": {"other": 1}}
    (report,) = simulate(sink, [json.dumps({"write": [record]}).encode()], name="x")
    assert len(report.errors) == 1


def test_a_schedule_closes_by_the_clock() -> None:
    sink = load_sink(CASES["interval-and-schedule"].output)
    record = {"topic": "raw_transactions", "partition": 0, "offset": 0, "timestamp": NOON_MS, "value": {}}
    steps = [{"advanceClockMs": NOON_MS}, {"write": [record]}, {"advanceClockMs": 600_000}, {"write": []}]
    first, second = simulate(sink, [json.dumps(step).encode() for step in steps], name="x")
    assert (first.closed, [each.key for each in second.closed]) == (
        [],
        [f"topics/raw_transactions/{DAY}/hour=12/raw_transactions+0+0000000000.json"],
    )
