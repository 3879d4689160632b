"""Regular expressions of Java."""

from __future__ import annotations

import warnings

import pytest

from sink_job.migrate.java.patterns import check_java_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "orders-.*",
        r"a\.(b|c)[0-9]{2,3}",
        "^(?!internal).*",
        r"(a)\1",
        "a++",
        "(?>a)b",
        "(?<=a)b",
        "(?i)orders",
        r"[\w.-]+",
        r"[]\[{a]x{2}",
        "[^]a&]",
        "[+--]",
        r"a\{b",
    ],
)
def test_an_expression_that_matches_the_same_is_taken(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_java_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[a-z&&[^x]]", "&& in a class, which means something else"),
        ("[[:alpha:]]+", "a class within a class, which means something else"),
        ("[a[b]]", "a class within a class"),
        (r"\p{L}+", r"\\p, which is valid in Java, not in"),
        (r"[\p{L}]", r"\\p, which is valid in Java, not in"),
        (r"\Qa.b\E", r"\\Q, which is valid in Java, not in"),
        ("(?<name>a)", r"\(\?<n, which is valid in Java, not in"),
        ("a{,3}", "{, which is not valid in Java"),
        ("a{b", "{, which is not valid in Java"),
        ("(?#text)a", "which is not valid in Java"),
        ("(?P<a>x)", "which is not valid in Java"),
        ("(?x)a b", "the flag x"),
        ("(?<=a|bc)d", "is valid in Java, not as a regular expression of this sink: look-behind"),
        ("a(?i)b", "is valid in Java, not as a regular expression of this sink: global flags"),
        ("(", "is not a valid regular expression"),
        ("[", "is not a valid regular expression"),
        ("a\\", "is not a valid regular expression"),
        ("", "is empty"),
    ],
)
def test_an_expression_that_is_not_the_same_here_is_rejected(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_java_pattern(pattern)
