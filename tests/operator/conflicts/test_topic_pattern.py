"""Whether a topic matches a pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.conflicts.topic_pattern import matches

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
    ("pattern", "topic", "matched"),
    [
        ("(?i)A+", "aaa", True),
        ("a(?i:A+)", "aaa", True),
        ("A(?i:A+)", "aaa", False),
        ("(" * 1000 + "a" + ")" * 1000, "a", True),
        ("(" * 1000 + "a" + ")" * 1000, "aa", False),
    ],
    ids=["any case", "any case in a part", "a case that differs", "deep nesting", "deep nesting of another text"],
)
def test_what_java_reads_alike_is_decided(pattern: str, topic: str, matched: bool) -> None:
    assert matches(pattern, topic) is matched


@pytest.mark.parametrize(
    "pattern", [r"\[[a&]+\]", r"[\[a]+", "[a&]+", r"a\{,2\}", "[{]", "[(?U)]+", "[^]a]+", r"\\[a]"]
)
def test_a_literal_of_such_a_construct_is_no_reason_not_to_match(pattern: str) -> None:
    for topic in ("[a]", "a", "[a", "a{,2}", "{", "U", "b"):
        assert matches(pattern, topic) is (re.fullmatch(pattern, topic) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("((a?){999}){999}b", id="takes too many steps"),
        pytest.param("[\u0100-\u8000a]{0,900}" * 51, id="takes megabytes and seconds when it is compiled"),
        pytest.param("(?=a)a.*", id="looks around"),
        pytest.param(r"(a)\1a*", id="has a back reference"),
        pytest.param("a{99999999999}", id="has a number beyond all bounds"),
        pytest.param(r"\p{Lower}+", id="is only Java's"),
        pytest.param("[a-z&&[^b]]+", id="has an intersection of classes"),
        pytest.param("[b[a]]+", id="has a union of classes"),
        pytest.param("[[:alpha:]]+", id="has a class of POSIX, which Java reads as a union"),
        pytest.param("a{,200}", id="has a brace that is an error in Java"),
        pytest.param("(?U)a+", id="has the flag U, which means Unicode in Java"),
        pytest.param("(?sU:a+)", id="has the flag U for a part"),
        pytest.param(r"\Qa\E+", id="has a quotation"),
        pytest.param(r"\141+", id="has an octal number"),
    ],
)
def test_the_result_is_undecided_if_a_pattern(pattern: str) -> None:
    assert matches(pattern, "a" * 200) is None
