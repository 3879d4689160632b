"""The identity of a sink as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.owner import OwnerIdentity

ELEMENT = st.text(
    st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="/"), min_size=1, max_size=5
)


@given(ELEMENT, ELEMENT, ELEMENT, ELEMENT)
def test_an_identity_is_parsed_from_its_text_again(cluster: str, namespace: str, name: str, sink_id: str) -> None:
    owner = OwnerIdentity(cluster, namespace, name, sink_id)
    assert str(owner) == f"{cluster}/{namespace}/{name}/{sink_id}"
    assert OwnerIdentity.parse(str(owner)) == owner


@pytest.mark.parametrize("text", ["", "a/b/c", "a/b/c/d/e", "a//c/d", "/b/c/d", "a/b/c/", "a/b/c/d\n", "a/b/\x00/d"])
def test_another_text_is_no_identity(text: str) -> None:
    with pytest.raises(ValueError, match="is not cluster/namespace/name/sinkId"):
        OwnerIdentity.parse(text)
