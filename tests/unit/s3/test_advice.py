from collections.abc import Mapping

import pytest

from sink_job.s3.checks import advice

ABORT = {"DaysAfterInitiation": 7}


def _rule(**other: object) -> dict[str, object]:
    return {"Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": ABORT} | other


@pytest.mark.parametrize(
    "rule",
    [
        _rule(),
        _rule(Filter={"Prefix": "top"}),
        _rule(Filter={"Prefix": "topics/"}),
        {"Status": "Enabled", "Prefix": "", "AbortIncompleteMultipartUpload": ABORT},
    ],
    ids=["whole bucket", "a shorter prefix", "the prefix itself", "the old form"],
)
def test_a_rule_that_clears_away_unfinished_uploads_needs_no_advice(rule: Mapping[str, object]) -> None:
    assert advice([rule], "s3://b", "topics/") is None


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [_rule(Status="Disabled")],
        [_rule(Filter={"Prefix": "other/"})],
        [_rule(Filter={"Tag": {"Key": "a", "Value": "b"}})],
        [_rule(Filter={"And": {"Prefix": "topics/", "ObjectSizeGreaterThan": 1}})],
        [{"Status": "Enabled", "Filter": {}, "Expiration": {"Days": 30}}],
    ],
    ids=["no rules", "disabled", "elsewhere", "by tag", "by size", "for other things"],
)
def test_without_such_a_rule_one_is_recommended(rules: list[Mapping[str, object]]) -> None:
    text = advice(rules, "s3://b", "topics/")
    assert text is not None
    assert "add a rule AbortIncompleteMultipartUpload after 7 days" in text


def test_a_rule_that_is_too_quick_for_open_objects_is_told() -> None:
    text = advice([_rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1})], "s3://b", "topics/")
    assert text is not None
    assert "aborts uploads below 'topics/' after 1 day(s)" in text
