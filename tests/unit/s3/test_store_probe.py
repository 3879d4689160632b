"""The probe of a store for conditional writes, and the advice about its lifecycle rules."""

import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext

import pytest

from sink_job.api.errors import AccessDenied, UnsupportedStore
from sink_job.s3 import S3Client, S3Settings, lifecycle_warning, probe, probe_replacement
from sink_job.s3.store_probe import advice
from tests.unit.s3.conftest import COMPLETED, Reply, ScriptedStore, error_reply

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


def _store_that_overwrites(store: ScriptedStore, *, puts: bool) -> None:
    started = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    stored = Reply(headers={"ETag": '"e"'})
    second = stored if puts else error_reply(412, "PreconditionFailed")
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    completed = [Reply(body=started), stored, COMPLETED, error_reply(404, "NoSuchUpload")]
    once = [stored, second, *([] if puts else completed), Reply(body="<DeleteResult/>")]
    store.replies.extend([*empty, *once, *once, *once])


@pytest.mark.parametrize(("puts", "message"), [(True, "a put replaced"), (False, "a completed upload replaced")])
def test_a_store_that_ignores_conditions_is_rejected_and_left_clean(
    s3: S3Client, store: ScriptedStore, puts: bool, message: str
) -> None:
    _store_that_overwrites(store, puts=puts)
    with pytest.raises(UnsupportedStore, match=f"ignores If-None-Match: {message} an object"):
        probe(s3, "topics/_s3sink/")
    puts_of_objects = [each for each in store.received if each.method == "PUT" and "?" not in each.path]
    keys = {each.path.removeprefix("/bucket/") for each in puts_of_objects}
    deleted = b"".join(each.body for each in store.received if each.path == "/bucket?delete")
    assert len(keys) == 3
    assert all(key.encode() in deleted for key in keys)


@pytest.mark.parametrize("honours", [True, False])
def test_a_store_that_ignores_if_match_at_a_completion_is_reported_and_left_clean(
    s3: S3Client, store: ScriptedStore, honours: bool
) -> None:
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    started = Reply(body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
    stored = Reply(headers={"ETag": '"e"'})
    answer = error_reply(412, "PreconditionFailed") if honours else COMPLETED
    store.replies.extend([*empty, stored, started, stored, answer, Reply(204), Reply(body="<DeleteResult/>")])
    with nullcontext() if honours else pytest.raises(UnsupportedStore, match="the store ignores If-Match"):
        probe_replacement(s3, "topics/_s3sink/")
    assert [each.headers["if-match"] for each in store.received if "if-match" in each.headers] != []
    assert not store.replies


@pytest.mark.parametrize("gone", ["the object", "the upload"])
def test_a_store_is_probed_again_if_another_driver_has_deleted_the_probes_object_or_upload(
    s3: S3Client, store: ScriptedStore, gone: str
) -> None:
    empty = [
        Reply(body=f"<{what}/>") for what in ("ListBucketResult", "ListBucketResult", "ListMultipartUploadsResult")
    ]
    started = Reply(body="<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
    stored, rejected = Reply(headers={"ETag": '"e"'}), error_reply(412, "PreconditionFailed")
    no_upload, deleted = error_reply(404, "NoSuchUpload"), Reply(body="<DeleteResult/>")
    disturbed = [stored, stored] if gone == "the object" else [stored, rejected, started, no_upload, no_upload]
    undisturbed = [stored, rejected, started, stored, rejected, Reply(status=204)]
    store.replies.extend([*empty, *disturbed, deleted, *undisturbed, deleted])
    probe(s3, "topics/_s3sink/")
    assert not store.replies


def test_a_bucket_without_lifecycle_rules_gets_a_warning(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([error_reply(404, "NoSuchLifecycleConfiguration"), Reply(body="<VersioningConfiguration/>")])
    warning = lifecycle_warning(s3, "topics/")
    assert warning is not None
    assert warning.startswith("s3://bucket: no lifecycle rule aborts incomplete uploads below 'topics/'")


def test_without_permission_to_read_the_lifecycle_rules_there_is_no_warning(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.append(error_reply(403, "AccessDenied"))
    assert lifecycle_warning(s3, "topics/") is None


def test_a_start_tries_the_attributes_of_objects(settings: S3Settings, store: ScriptedStore) -> None:
    listing = Reply(body="<ListBucketResult></ListBucketResult>", headers={"Date": "Thu, 26 Nov 2026 00:00:00 GMT"})
    uploads = Reply(body="<ListMultipartUploadsResult></ListMultipartUploadsResult>")
    written = Reply(headers={"ETag": '"e"'})
    exists = error_reply(412, "PreconditionFailed")
    store.replies.extend([listing, listing, uploads, written, exists, error_reply(403, "AccessDenied")])
    store.otherwise = Reply(body="<DeleteResult></DeleteResult>")
    attributes = (("StorageClass", "STANDARD_IA"), ("ACL", "private"), ("Tagging", "team=orders"))
    s3 = S3Client(dataclasses.replace(settings, attributes=attributes))
    with pytest.raises(AccessDenied):
        probe(s3, "topics/_s3sink/a/")
    (created,) = (each for each in store.received if "uploads" in each.path and each.method == "POST")
    assert [created.headers[f"x-amz-{name}"] for name in ("storage-class", "acl", "tagging")] == [
        "STANDARD_IA",
        "private",
        "team=orders",
    ]
    put = next(each for each in store.received if each.method == "PUT")
    assert not {"x-amz-storage-class", "x-amz-acl", "x-amz-tagging"} & put.headers.keys()
    s3.close()
