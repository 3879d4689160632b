"""What `kubectl s3sink explain` shows."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl import effective_settings
from s3sink_operator.types import Json
from tests.operator.config.test_sink_defaults import SIZES, defaults, with_defaults


def test_explain_shows_a_field_that_a_sink_sets_to_the_default_of_this_version() -> None:
    cluster = with_defaults(defaults(**SIZES), executor={"mode": "Cluster", "cores": 1})
    rows = {each.field: (each.value, each.source) for each in effective_settings.settings_of(cluster.sink)}
    assert rows["spec.executor.cores"] == ("1", "spec")
    assert rows["spec.executor.memory.max"] == ("2Gi", "operator")


def test_explain_shows_values_and_whether_the_sink_or_the_operator_sets_them() -> None:
    cluster = with_defaults(
        defaults(s3={"region": "eu-central-1"}, nodeSelector={"disk": "ssd"}),
        sparkConf={"spark.app.note": "https://user:geheim@host"},
    )
    rows = {each.field: (each.value, each.source) for each in effective_settings.settings_of(cluster.sink)}
    assert rows["spec.s3.region"] == ("eu-central-1", "operator")
    assert rows["spec.driver.podTemplate.spec.nodeSelector.disk"] == ("ssd", "operator")
    assert rows["spec.s3.bucket"] == ("archive", "spec")
    assert rows["spec.kafka.topics"] == ('["flights"]', "spec")
    assert "spec.executor.cores" not in rows, "a default of this version"
    text = effective_settings.explanation(cluster.sink)
    assert text.splitlines()[0].split() == ["FIELD", "VALUE", "SOURCE"]
    assert "geheim" not in text
    cluster.edit(rotation={"flushSize": 7})
    assert "may be outdated" in effective_settings.explanation(cluster.sink)


def skipping(text: str, **spec: Any) -> Json:
    """A sink with this annotation."""
    cluster = with_defaults(defaults(), **spec)
    cluster.sink["metadata"]["annotations"] = {names.SKIP_ANNOTATION: text}
    return cluster.sink


def skips(sink: Json) -> list[tuple[str, str]]:
    settings = effective_settings.settings_of(sink)
    return [(each.value, each.source) for each in settings if each.field == "spec.errors.skip"]


def test_explain_shows_the_records_to_skip_of_the_annotation_beside_those_of_the_spec() -> None:
    listed = {"topic": "flights", "partition": 0, "offset": 42}
    sink = skipping("flights-0@7, flights-0@42", errors={"skip": [listed]})
    assert skips(sink) == [
        ('[{"topic":"flights","partition":0,"offset":42}]', "spec"),
        ('[{"topic":"flights","partition":0,"offset":7}]', "annotation"),
    ]
    assert "annotation" in effective_settings.explanation(sink)
    assert skips(skipping("flights-0@42", errors={"skip": [listed]})) == [
        ('[{"topic":"flights","partition":0,"offset":42}]', "spec")
    ]


@pytest.mark.parametrize("text", ["flights", "flights-0@7, flights"])
def test_explain_reports_an_annotation_that_is_ignored(text: str) -> None:
    sink = skipping(text)
    assert skips(sink) == []
    assert effective_settings.explanation(sink).endswith(
        "The annotation s3sink.io/skip is ignored: flights is not topic-partition@offset, such as flights-0@42."
    )


@pytest.mark.parametrize(("text", "shown"), [("Running", ("Running", "annotation")), ("Halted", ("Paused", "spec"))])
def test_explain_shows_the_state_of_the_annotation_in_the_place_of_that_of_the_spec(
    text: str, shown: tuple[str, str]
) -> None:
    sink = skipping("flights-0@7")
    sink["spec"]["state"] = "Paused"
    sink["metadata"]["annotations"] = {names.STATE_ANNOTATION: text}
    settings = effective_settings.settings_of(sink)
    assert [(each.value, each.source) for each in settings if each.field == "spec.state"] == [shown]
