"""Keys of customers (SSE-C) through a proxy that demands them: no server of the tests knows them.

What this cannot show: that AWS encrypts, and that AWS replies to another key as documented.
"""

from __future__ import annotations

import base64
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import VersityGW
from sink_job.api.errors import ConfigurationError, UnsupportedStore
from sink_job.cli.store_checks import Outcome, check_store
from sink_job.coordinator.context import StopCondition
from sink_job.s3 import S3Client, probe_encryption
from tests.support.customer_key_store import CustomerKeyStore
from tests.support.forked import killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

ALL = StopCondition(until_caught_up=True, publish_open=True)
CAUGHT_UP = StopCondition(until_caught_up=True)
FIRST = {"type": "Customer", "customerKey": {"secret": "keys", "key": "a"}}
SECOND = {"type": "Customer", "customerKey": {"secret": "keys", "key": "b"}}
Keyed = Callable[..., SinkFixture]


KILLED_AT: dict[str, Predicate] = {
    "a part": lambda r: r.kind == "UploadPart" and "/probe/" not in r.key,
    "a staged remainder": lambda r: r.kind == "PutObject" and "/staging/" in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key,
    "a completion": lambda r: r.kind == "CompleteMultipartUpload" and "/probe/" not in r.key,
}


@pytest.fixture
def store(gateway: VersityGW) -> Iterator[CustomerKeyStore]:
    with CustomerKeyStore(gateway.endpoint) as proxy:
        yield proxy


def written(folder: Path, name: str) -> Path:
    (folder / name).write_text(base64.b64encode(name.encode() * 32).decode() + "\n")
    return folder / name


def md5_of(name: str) -> str:
    return base64.b64encode(md5(name.encode() * 32, usedforsecurity=False).digest()).decode()


@pytest.fixture
def plain(gateway: VersityGW, tmp_path: Path) -> SinkFixture:
    return SinkFixture.new(gateway.endpoint, tmp_path)


@pytest.fixture
def keyed(plain: SinkFixture, store: CustomerKeyStore, tmp_path: Path) -> Keyed:
    """The sink with keys, the current one first."""

    def sink(*names: str) -> SinkFixture:
        files = tuple(written(tmp_path, name) for name in names)
        settings = dataclasses.replace(plain.settings, endpoint=store.endpoint, customer_keys=files)
        return dataclasses.replace(plain, settings=settings)

    return sink


def run(
    sink: SinkFixture,
    log: SyntheticLog,
    goal: StopCondition = ALL,
    *,
    encryption: Mapping[str, Any] = FIRST,
    **given: Any,
) -> None:
    """Runs the sink with the section that its keys belong to."""
    s3 = {"bucket": sink.bucket, "endpoint": sink.endpoint, "region": "us-east-1", "pathStyle": True, "partSize": "5Mi"}
    sink.run(log, goal, **{"flush_size": 10, "spec": {"s3": {**s3, "encryption": encryption}}, **given})


def test_each_object_and_each_file_of_the_ledger_has_the_key(store: CustomerKeyStore, keyed: Keyed) -> None:
    sink = keyed("a")
    run(sink, SyntheticLog(records=25))
    found = [each.key for each in sink.s3.list("topics/")]
    assert len([key for key in found if "/_s3sink/" not in key]) == 3
    assert {store.keys[key] for key in found} == {md5_of("a")}
    assert store.rejected == []
    assert len(sink.contents()) == 3


def test_a_changed_key_closes_open_objects_first_and_later_ones_have_it(store: CustomerKeyStore, keyed: Keyed) -> None:
    log = SyntheticLog(records=7, value_bytes=1_800_000)
    run(keyed("a"), log, CAUGHT_UP)
    (upload,) = keyed("a").s3.list_uploads("topics/log/")
    changed = keyed("b", "a")
    run(changed, dataclasses.replace(log, records=10))
    by_key = {key: store.keys[key] for key in changed.contents()}
    assert [md5 for _, md5 in sorted(by_key.items())] == [md5_of("a"), md5_of("b")]
    assert min(by_key) == upload.key
    rejected = len(store.rejected)
    (result,) = changed.verify(dataclasses.replace(log, records=10))
    assert (result.objects, result.records, result.findings) == (2, 10, ())
    assert len(store.rejected) > rejected, "the first object was read with its own key"


def test_a_sink_without_a_key_gets_one(store: CustomerKeyStore, plain: SinkFixture, keyed: Keyed) -> None:
    log = SyntheticLog(records=7, value_bytes=1_800_000)
    plain.run(log, CAUGHT_UP, flush_size=10)
    store.keys.update((each.key, "") for each in plain.s3.list("topics/"))
    store.uploads.update((each.key, "") for each in plain.s3.list_uploads("topics/"))
    changed = keyed("a")
    run(changed, dataclasses.replace(log, records=10))
    keys = [store.keys.get(key) for key in sorted(changed.contents())]
    assert keys == ["", md5_of("a")]


def left_behind(plain: SinkFixture, store: CustomerKeyStore, key: Path) -> SinkFixture:
    """The sink with the encryption of S3, and the key in previousKeys."""
    store.demands = False
    encryption = (("ServerSideEncryption", "AES256"),)
    settings = dataclasses.replace(
        plain.settings, endpoint=store.endpoint, customer_keys=(None, key), encryption=encryption
    )
    return dataclasses.replace(plain, settings=settings)


LEFT = {"type": "Aes256", "previousKeys": [{"secret": "keys", "key": "a"}]}


def test_a_sink_that_leaves_its_key_closes_open_objects_first_and_later_ones_have_none(
    store: CustomerKeyStore, plain: SinkFixture, keyed: Keyed, tmp_path: Path
) -> None:
    log = SyntheticLog(records=7, value_bytes=1_800_000)
    run(keyed("a"), log, CAUGHT_UP)
    (upload,) = keyed("a").s3.list_uploads("topics/log/")
    left, longer = left_behind(plain, store, tmp_path / "a"), dataclasses.replace(log, records=10)
    run(left, longer, encryption=LEFT)
    by_key = {key: store.keys[key] for key in left.contents()}
    assert [md5 for _, md5 in sorted(by_key.items())] == [md5_of("a"), ""]
    assert min(by_key) == upload.key
    (result,) = left.verify(longer)
    assert (result.objects, result.records, result.findings) == (2, 10, ())
    assert left.orphans() == []


@pytest.mark.parametrize("effect", ["a part", "a record", "a completion"])
def test_a_driver_killed_while_it_leaves_its_key_is_continued_without_it(
    store: CustomerKeyStore, plain: SinkFixture, keyed: Keyed, tmp_path: Path, effect: str
) -> None:
    log = SyntheticLog(records=7, value_bytes=1_800_000)
    run(keyed("a"), log, CAUGHT_UP)
    left, longer = left_behind(plain, store, tmp_path / "a"), dataclasses.replace(log, records=10)
    work = partial(run, left, longer, encryption=LEFT)
    matches = KILLED_AT[effect]
    assert killed_at(work, store, lambda r: matches(r) and "owner.json" not in r.key, "after", 1)
    store.watch()
    run(left, longer, encryption=LEFT)
    (result,) = left.verify(longer)
    assert (result.objects, result.records, result.findings) == (2, 10, ())
    assert [store.keys[key] for key in sorted(left.contents())] == [md5_of("a"), ""]


def test_without_the_previous_key_a_sink_does_not_start(keyed: Keyed) -> None:
    run(keyed("a"), SyntheticLog(records=5), CAUGHT_UP)
    with pytest.raises(ConfigurationError):
        run(keyed("b"), SyntheticLog(records=5))


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", KILLED_AT)
def test_a_driver_killed_with_a_key_is_continued_with_it(
    store: CustomerKeyStore, keyed: Keyed, effect: str, point: Point
) -> None:
    log = SyntheticLog(records=8, value_bytes=1_800_000)
    given: dict[str, Any] = {"flush_size": 5, "max_records": 2}
    sink = keyed("a")
    nth = 2 if effect == "a record" else 1  # the first one is the claim
    assert killed_at(partial(run, sink, log, **given), store, KILLED_AT[effect], point, nth)
    store.watch()
    run(sink, log, **given)
    (result,) = sink.verify(log)
    assert (result.objects, result.records, result.findings) == (2, 8, ())
    assert {store.keys[key] for key in sink.contents()} == {md5_of("a")}
    assert store.rejected == []


def test_a_sink_without_its_key_does_not_start_and_changes_nothing(
    store: CustomerKeyStore, plain: SinkFixture, keyed: Keyed
) -> None:
    log = SyntheticLog(records=7, value_bytes=1_800_000)
    run(keyed("a"), log, CAUGHT_UP)
    (upload,) = keyed("a").s3.list_uploads("topics/log/")
    records = keyed("a").records()
    store.demands = False
    left = dataclasses.replace(plain, settings=dataclasses.replace(plain.settings, endpoint=store.endpoint))
    with pytest.raises(ConfigurationError, match="previousKeys"):
        left.run(dataclasses.replace(log, records=10), ALL, flush_size=10)
    assert [each.upload_id for each in left.s3.list_uploads("topics/log/")] == [upload.upload_id]
    assert (left.records(), left.keys()) == (records, [])
    run(keyed("a"), dataclasses.replace(log, records=10))
    (result,) = keyed("a").verify(dataclasses.replace(log, records=10))
    assert (result.objects, result.records, result.findings) == (1, 10, ())


def test_a_store_that_ignores_the_key_is_rejected(plain: SinkFixture, tmp_path: Path) -> None:
    settings = dataclasses.replace(plain.settings, customer_keys=(written(tmp_path, "a"),))
    s3 = S3Client(settings)
    with pytest.raises(UnsupportedStore, match=r"the store ignores spec\.s3\.encryption"):
        probe_encryption(s3, "topics/_s3sink/a/")
    s3.close()


def test_check_store_tries_the_key(keyed: Keyed) -> None:
    s3 = keyed("a").s3
    checks = {each.name: each for each in check_store(s3, "topics/_s3sink/a/", s3.server_now_ms, has_encryption=True)}
    assert checks["encryption"].outcome is Outcome.OK
    assert list(s3.list("topics/_s3sink/a/")) == []


def test_the_key_is_in_no_log_error_or_claim(keyed: Keyed, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    sink = keyed("a")
    with caplog.at_level(logging.INFO):
        run(sink, SyntheticLog(records=5), CAUGHT_UP)
        with pytest.raises(ConfigurationError) as error:
            run(keyed("b"), SyntheticLog(records=5))
    text = base64.b64encode(b"a" * 32).decode()
    claims = "".join(sink.ledger_access().ledger.load().settings.values())
    assert "customer_key" in claims or "customerKey" in claims
    for each in (caplog.text, str(error.value), claims, repr(sink.settings)):
        assert text not in each
        assert md5_of("a") not in each
