"""Validated texts of a manifest: what each check accepts up to its limits, and what it rejects."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.api import field_types as types

CASES: dict[Callable[[str], None], tuple[list[str], dict[str, str]]] = {
    types.check_dns_label: (
        ["a", "a-1", "1a", "x" * 63],
        {"": "not a valid name", "A": "not a valid name", "-a": "not a valid name", "a-": "not a valid name"}
        | {"a.b": "not a valid name", "x" * 64: "longer than 63", "a\n": "not a valid name"},
    ),
    types.check_object_name: (
        ["a", "a.b-c.d", "x" * 253],
        {
            "a..b": "not a valid name",
            ".a": "not a valid name",
            "a.-b": "not a valid name",
            "x" * 254: "longer than 253",
        },
    ),
    types.check_data_key: (
        ["ca.crt", "_A-1", ".a", "x" * 253],
        {"a/b": "not a valid key", "": "not a valid key", ".": "not start with ..", "..": "not start with .."}
        | {"..data": "not start with ..", "x" * 254: "longer than 253"},
    ),
    types.check_sink_id: (
        ["a", "A.b_c-1", "x" * 127, "Topics"],
        {
            "": "not a valid sink id",
            ".a": "not a valid sink id",
            "a.": "not a valid sink id",
            "a..b": "must not contain ..",
        }
        | {"topics": "is reserved", "x" * 128: "longer than 127"},
    ),
    types.check_topic: (
        ["a", "A._-", "...", "x" * 249],
        {
            "": "not a valid topic name",
            "a b": "not a valid topic name",
            ".": "does not allow . and ..",
            "..": "does not allow",
        }
        | {"_s3sink": "a directory of this name holds the ledgers", "x" * 250: "longer than 249"},
    ),
    types.check_topics_pattern: (
        [".*", "a|b", "x" * 1024],
        {
            "": "is empty",
            "(": "not a valid regular expression",
            "(?P<a>x)": "do not support",
            "(x)(?(1)a)": "do not support",
        }
        | {
            "x" * 1025: "longer than 1024",
            "x{99999999999}": "not a valid regular expression",
            "(" * 1000: "too many nested",
        },
    ),
    types.check_group_id: (
        ["a b", "ä", "x" * 255],
        {
            "": "is empty",
            " a": "starts or ends with a blank",
            "a ": "starts or ends with a blank",
            "a\tb": "control characters",
        }
        | {"x" * 256: "longer than 255"},
    ),
    types.check_property: (
        ["a", "ssl.key-store_1", "x" * 200],
        {"a..b": "not a valid property name", ".a": "not a valid", "a.": "not a valid", "x" * 201: "longer than 200"},
    ),
    types.check_bootstrap_servers: (
        ["a:1", "a.b_c:9092, [::1]:65535", "[fe80::1%1]:1"],
        dict.fromkeys(
            ("", "a", "a:", "a:0", "a:65536", "a:1,", "http://a:1", "a b:1", "::1:1"), "not a list of brokers"
        ),
    ),
    types.check_extension: (
        [".bin", ".tar.gz", "." + "x" * 31],
        {
            "bin": "not a valid extension",
            ".": "not a valid extension",
            "..a": "not a valid",
            "." + "x" * 32: "longer than 32",
        },
    ),
    types.check_field_path: (
        ["a", "a.b", "ä b", "x" * 512],
        {
            "": "is empty",
            "a..b": "empty segment",
            ".a": "empty segment",
            "a.": "empty segment",
            "a\x00": "control characters",
        }
        | {"x" * 513: "longer than 512", "\ud800": "control characters"},
    ),
    types.check_timezone: (
        ["UTC", "Europe/Berlin", "+00:00", "-23:59"],
        {"europe/berlin": "did you mean Europe/Berlin?", "Europe/Berlim": "did you mean Europe/Berlin?"}
        | {
            "+24:00": "such as Europe/Berlin",
            "+02:60": "not a known time zone",
            "Factory": "not a known",
            "x" * 65: "longer than",
        },
    ),
    types.check_locale: (
        ["en", "de-CH", "de_CH", "zh-Hans-CN", "es-419"],
        {
            "": "not a known locale",
            "xx": "not a known locale",
            "english": "not a known locale",
            "de-XX-1": "not a known",
        },
    ),
    types.check_topics_dir: (
        ["", "a", "a/b c", "x" * 512, "..."],
        {
            "/a": "empty element",
            "a/": "empty element",
            "a//b": "empty element",
            "a/../b": "element . or ..",
            ".": "element .",
        }
        | {"a/_s3sink": "reserved for ledgers", "x" * 513: "longer than 512", "a\nb": "control characters"},
    ),
    types.check_delimiter: (
        ["/", "--", "1", "x" * 16],
        {"": "is empty", "%": "contains %", "_s3sink": "reserved for ledgers", "x" * 17: "longer than 16"},
    ),
    types.check_file_delimiter: (["+", "--"], {"a1": "contains a digit", "²": "contains a digit", "%": "contains %"}),
    types.check_bucket: (
        ["abc", "a.b-c", "1" * 63],
        {"ab": "3 to 63 characters", "x" * 64: "3 to 63 characters", "Abc": "not a valid", "-abc": "not a valid"}
        | {"a..b": "two dots in a row", "ab.": "not a valid"},
    ),
    types.check_region: (
        ["eu-central-1", "auto", "x" * 64],
        {
            "": "not a valid region",
            "EU": "not a valid region",
            "a--b": "not a valid region",
            "x" * 65: "longer than 64",
        },
    ),
    types.check_endpoint: (
        ["https://s3.example.com", "http://localhost:9000/", "https://[::1]:9000", "https://10.0.0.1", "https://a-b"],
        {
            "s3.example.com": "not the URL of a store",
            "ftp://a": "not the URL",
            "https://": "not the URL",
            "https://a:0": "not the",
        }
        | {
            "https://a:99999": "not the URL of a store",
            "https://u:p@a": "contains credentials",
            "https://a/b": "without a path",
        }
        | {"https://a?b": "without a path", "https://a#b": "without a path", "https://a_b": "no valid host"}
        | {"https://-a": "no valid host", "https://a-": "no valid host", "https://a\n": "no valid host"}
        | {
            "https://" + "x" * 64: "no valid host",
            "https://[::": "not the URL",
            "https://a" + "/" * 512: "longer than 512",
        },
    ),
}
ACCEPTED = [
    pytest.param(check, text, id=f"{check.__name__} {text[:20]!r}")
    for check, (texts, _) in CASES.items()
    for text in texts
]
REJECTED = [
    pytest.param(check, text, reason, id=f"{check.__name__} {text[:20]!r} {len(text)}")
    for check, (_, reasons) in CASES.items()
    for text, reason in reasons.items()
]


@pytest.mark.parametrize(("check", "text"), ACCEPTED)
def test_a_valid_text_is_accepted(check: Callable[[str], None], text: str) -> None:
    check(text)


@pytest.mark.parametrize(("check", "text", "reason"), REJECTED)
def test_another_text_is_rejected_with_the_reason(check: Callable[[str], None], text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        check(text)


@settings(max_examples=30)
@pytest.mark.parametrize("check", CASES, ids=lambda check: check.__name__)
@given(st.text(max_size=12))
def test_any_text_is_accepted_or_rejected_with_words_that_can_follow_it(
    check: Callable[[str], None], text: str
) -> None:
    try:
        check(text)
    except ValueError as error:
        assert re.match(r"(is|has|contains|cannot|uses|starts) ", str(error))  # noqa: PT017 (a text may be valid)


@pytest.mark.parametrize(
    ("endpoint", "loopback"),
    [
        ("http://localhost:9000", True),
        ("http://s3.localhost", True),
        ("http://127.0.0.1", True),
        ("http://127.1.2.3:1", True),
        ("http://[::1]:9000", True),
        ("http://128.0.0.1", False),
        ("http://notlocalhost", False),
        ("http://localhost.example.com", False),
        ("http://", False),
    ],
)
def test_a_loopback_endpoint_is_on_this_machine(endpoint: str, loopback: bool) -> None:
    assert types.is_loopback(endpoint) is loopback
