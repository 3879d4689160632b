"""Whether an object differs from the desired one."""

from __future__ import annotations

import copy

from s3sink_operator import objects
from tests.operator.fake_cluster import SETTINGS
from tests.operator.objects.manifests import OWNER, sink


def test_an_annotation_that_the_spec_has_no_more_is_a_difference_and_one_of_others_is_none() -> None:
    plain = objects.service_account(sink(), OWNER)
    desired = objects.service_account(sink(serviceAccount={"annotations": {"role": "a"}}), OWNER)
    both = objects.service_account(sink(serviceAccount={"annotations": {"role": "a", "more": "b"}}), OWNER)
    theirs = copy.deepcopy(desired)
    theirs["metadata"]["annotations"]["theirs"] = "stays"
    assert not objects.differs(theirs, desired)
    assert objects.differs(plain, desired)
    assert objects.differs(both, desired)
    assert objects.differs(desired, plain)


def test_what_others_add_is_no_difference_and_what_they_change_is() -> None:
    desired = objects.role_binding(sink(), OWNER, SETTINGS)
    seen = copy.deepcopy(desired)
    seen["metadata"] |= {"uid": "1", "resourceVersion": "7"}
    seen["metadata"]["labels"]["team"] = "a"
    seen["metadata"]["ownerReferences"].insert(0, {"uid": "other"})
    assert not objects.differs(seen, desired)
    seen["subjects"].append({"kind": "User", "name": "eve"})
    assert objects.differs(seen, desired)
    assert objects.differs(None, desired)
