"""The way does not matter, whatever the CustomResourceDefinition lets a spec say."""

from __future__ import annotations

import copy

from hypothesis import given

from s3sink_operator.types import Json
from tests.operator.fake_cluster import SETTINGS, Cluster, document
from tests.operator.schema_specs import specs
from tests.operator.test_properties import created, shown


def edited_to(cluster: Cluster, spec: Json) -> None:
    cluster.sink["spec"] = copy.deepcopy(spec)
    cluster.sink["metadata"]["generation"] += 1
    cluster.converge_with_kubelet()


@given(specs(), specs())
def test_editing_any_spec_into_any_other_gives_the_same_objects_as_creating_that(first: Json, second: Json) -> None:
    edited = created(first)
    edited_to(edited, second)
    made = created(second)
    assert shown(edited) == shown(made)
    assert edited.ready == made.ready


@given(specs())
def test_a_sink_of_any_spec_settles_and_then_nothing_is_written(spec: Json) -> None:
    cluster = Cluster(sink=document(**spec), settings=SETTINGS)
    cluster.converge_with_kubelet()
    cluster.log.clear()
    assert not cluster.reconcile(), cluster.log
