from collections.abc import Mapping

import pytest

from sink_job.s3.store_probe import advice

ABORT = {"DaysAfterInitiation": 7}


def _rule(**other: object) -> dict[str, object]:
    return {"Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": ABORT} | other


def _advice(*rules: Mapping[str, object], versioned: bool = False) -> list[str]:
    return advice(rules, "topics/", versioned=versioned)


@pytest.mark.parametrize(
    "rule",
    [
        _rule(),
        _rule(Filter={"Prefix": "top"}),
        _rule(Filter={"Prefix": "topics/"}),
        {"Status": "Enabled", "Prefix": "", "AbortIncompleteMultipartUpload": ABORT},
    ],
    ids=["whole bucket", "a shorter prefix", "the prefix itself", "the old form of a rule"],
)
def test_a_rule_that_aborts_incomplete_uploads_needs_no_advice(rule: Mapping[str, object]) -> None:
    assert _advice(rule) == []


@pytest.mark.parametrize(
    "rule",
    [
        {},
        _rule(Status="Disabled"),
        _rule(Filter={"Prefix": "other/"}),
        _rule(Filter={"Tag": {"Key": "a", "Value": "b"}}),
        _rule(Filter={"And": {"Prefix": "topics/", "ObjectSizeGreaterThan": 1}}),
        {"Status": "Enabled", "Filter": {}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
    ],
    ids=["no rules", "disabled", "another prefix", "by tag", "by size", "another action"],
)
def test_without_a_rule_that_aborts_incomplete_uploads_one_is_recommended(rule: Mapping[str, object]) -> None:
    [line] = _advice(rule)
    assert "add a rule AbortIncompleteMultipartUpload after 7 days" in line


def test_a_rule_that_aborts_uploads_too_early_for_open_objects_is_reported() -> None:
    [line] = _advice(_rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1}))
    assert "aborts uploads below 'topics/' after 1 day(s)" in line


def test_a_rule_that_would_expire_the_ledger_is_reported() -> None:
    [line] = _advice(_rule(Expiration={"Days": 30}))
    assert "the ledger in 'topics/_s3sink/'" in line


def test_a_rule_that_removes_only_delete_markers_needs_no_advice() -> None:
    assert _advice(_rule(Expiration={"ExpiredObjectDeleteMarker": True})) == []


def test_a_bucket_that_keeps_all_old_versions_is_reported() -> None:
    [line] = _advice(_rule(), versioned=True)
    assert "NoncurrentVersionExpiration for 'topics/_s3sink/'" in line


def test_a_bucket_that_expires_old_versions_needs_no_advice() -> None:
    assert _advice(_rule(NoncurrentVersionExpiration={"NoncurrentDays": 1}), versioned=True) == []
