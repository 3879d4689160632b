"""Whether a topic matches a pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.topic_pattern import matches

atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "[a-c-]", r"\d", r"[\w.]", r"\W", r"\.", "^", "$", ""])
suffixes = st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "*?", "{,2}"])


def patterns() -> st.SearchStrategy[str]:
    """Of few characters, so that topics of the same match often."""
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("".join, st.lists(inner, max_size=4)),
            st.builds(lambda one, other: f"({one}|{other})", inner, inner),
            st.builds(lambda one, times: f"(?:{one}){times}", inner, suffixes),
        ),
        max_leaves=8,
    )


@given(patterns(), st.text(alphabet="abc1.-_", max_size=8))
def test_a_pattern_means_what_it_means_to_python(pattern: str, topic: str) -> None:
    assert matches(pattern, topic) in (re.fullmatch(pattern, topic) is not None, None)


@pytest.mark.parametrize("pattern", ["flights-.*", "(eu|us)[.]orders", "[a-z]+_v[0-9]{1,2}", r"\w+", "(?s).*?"])
@pytest.mark.parametrize("topic", ["flights-2025", "eu.orders", "orders_v12", "orders", "Orders"])
def test_common_patterns_are_decided(pattern: str, topic: str) -> None:
    assert matches(pattern, topic) is (re.fullmatch(pattern, topic) is not None)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*a){12}b", "(a?){60}b", "((a*)*)*b"])
def test_patterns_with_exponential_backtracking_are_decided_at_once(pattern: str) -> None:
    assert matches(pattern, "a" * 60) is False
    assert matches(pattern, "a" * 60 + "b") is True


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("((a?){999}){999}b", id="takes too many steps"),
        pytest.param("(" * 1000 + "a" + ")" * 1000, id="is nested too deep"),
        pytest.param("(?=a)a.*", id="looks around"),
        pytest.param(r"(a)\1a*", id="has a back reference"),
        pytest.param("(?i)A+", id="takes any case"),
        pytest.param("a(?i:A+)", id="takes any case in a part"),
        pytest.param("a{99999999999}", id="has a number beyond all bounds"),
        pytest.param(r"\p{Lower}+", id="is only Java's"),
    ],
)
def test_the_result_is_undecided_if_a_pattern(pattern: str) -> None:
    assert matches(pattern, "a" * 200) is None
