"""What `kubectl s3sink explain` shows."""

from __future__ import annotations

from s3sink_operator.kubectl import effective_settings
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
