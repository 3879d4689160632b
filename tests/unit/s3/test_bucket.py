"""The requests about the bucket, and the clock of the store."""

import contextlib
import time
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import AccessDenied, ClockSkew, ConfigurationError
from sink_job.s3 import S3Client
from sink_job.s3.bucket import date_ms, millis
from tests.unit.s3.conftest import Reply, ScriptedStore, error_reply


@pytest.mark.parametrize("reply", [Reply(), error_reply(403, "RequestTimeTooSkewed")], ids=["an answer", "an error"])
def test_the_stores_clock_is_that_of_its_last_answer(
    s3: S3Client, store: ScriptedStore, reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3.clock_ms() is None
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: "Tue, 14 Nov 2023 22:13:20 GMT")
    store.otherwise = reply
    with contextlib.suppress(ClockSkew):
        s3.check_access()
    shown = s3.clock_ms()
    assert shown is not None
    assert 1_700_000_000_000 <= shown < 1_700_000_060_000
    assert len(store.received) == 1


@pytest.mark.parametrize("date", ["yesterday", ""])
def test_a_store_without_a_readable_date_has_no_clock(
    s3: S3Client, store: ScriptedStore, date: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: date)
    s3.check_access()
    assert s3.clock_ms() is None


def test_the_current_time_of_the_store_is_requested(
    s3: S3Client, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: "Tue, 14 Nov 2023 22:13:20 GMT")
    assert s3.server_now_ms() == 1_700_000_000_000
    assert len(store.received) == 1


def test_the_current_time_of_a_store_without_a_date_is_that_of_this_host(
    s3: S3Client, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: "")
    before = int(time.time() * 1000)
    assert before <= s3.server_now_ms() <= int(time.time() * 1000)


@pytest.mark.parametrize("hours", [-8, 0, 5.5])
def test_a_time_of_any_zone_is_counted_from_the_epoch(hours: float) -> None:
    zone = timezone(timedelta(hours=hours))
    assert millis(datetime(1970, 1, 1, 0, 0, 1, 2_999, tzinfo=UTC).astimezone(zone)) == 1_002
    assert millis(datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC).astimezone(zone)) == -1


def answer(date: str | None) -> dict[str, object]:
    return {"ResponseMetadata": {"HTTPHeaders": {} if date is None else {"date": date}}}


@pytest.mark.parametrize(
    ("date", "ms"),
    [
        ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000_000),
        ("Tue, 14 Nov 2023 23:13:20 +0100", 1_700_000_000_000),
        ("Tue, 14 Nov 2023 22:13:20 -0000", 1_700_000_000_000),  # no zone: UTC
        ("Tue, 14 Nov 2023 22:13:20", 1_700_000_000_000),
        (None, None),
        ("", None),
        ("yesterday", None),
        ("Tue, 99 Nov 2023 22:13:20 GMT", None),
        ("Tue, 14 Nov 99999 22:13:20 GMT", None),
    ],
)
def test_the_date_of_an_answer_is_none_unless_it_can_be_read(date: str | None, ms: int | None) -> None:
    assert date_ms(answer(date)) == ms


@given(st.text(st.sampled_from("TueNov14 2023:,GMT+-9")))
def test_no_text_in_place_of_a_date_is_an_error(date: str) -> None:
    found = date_ms(answer(date))
    assert found is None or isinstance(found, int)


def test_the_rules_of_a_bucket_are_returned_in_the_form_of_the_api(s3: S3Client, store: ScriptedStore) -> None:
    rule = "<Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>p</Prefix></Filter></Rule>"
    store.replies.append(Reply(body=f"<LifecycleConfiguration>{rule}</LifecycleConfiguration>"))
    assert s3.lifecycle_rules() == [{"ID": "a", "Status": "Enabled", "Filter": {"Prefix": "p"}}]


def test_a_bucket_without_rules_has_none_and_is_asked_once(s3: S3Client, store: ScriptedStore) -> None:
    store.otherwise = error_reply(404, "NoSuchLifecycleConfiguration")
    assert s3.lifecycle_rules() == ()
    assert len(store.received) == 1


def test_the_rules_are_requested_again_after_a_transient_failure(s3: S3Client, store: ScriptedStore) -> None:
    store.replies.extend([error_reply(503, "SlowDown"), Reply(body="<LifecycleConfiguration/>")])
    assert list(s3.lifecycle_rules()) == []
    assert len(store.received) == 2


@pytest.mark.parametrize(
    ("status", "keeps"),
    [("<Status>Enabled</Status>", True), ("<Status>Suspended</Status>", False), ("", False)],
)
def test_only_a_bucket_with_versioning_enabled_keeps_versions(
    s3: S3Client, store: ScriptedStore, status: str, keeps: bool
) -> None:
    store.replies.append(Reply(body=f"<VersioningConfiguration>{status}</VersioningConfiguration>"))
    assert s3.keeps_versions() is keeps


@pytest.mark.parametrize("code", ["AccessDenied", "AllAccessDisabled"])
def test_a_bucket_that_cannot_be_listed_has_a_reason(s3: S3Client, store: ScriptedStore, code: str) -> None:
    store.otherwise = error_reply(403, code)
    with pytest.raises(ConfigurationError if code != "AccessDenied" else AccessDenied, match="s3://bucket"):
        s3.check_access()
