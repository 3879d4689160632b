"""The jars of a login with IAM of MSK: where they are found, and which sinks get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.kafka.jvm import spark_jars
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark import login_jars
from sink_job.spark.login_jars import MSK_IAM, kafka_jars, msk_iam_jars

IAM = KafkaProperties({"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"})


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S3SINK_JARS", raising=False)
    monkeypatch.setattr(login_jars, "client_jars", lambda _: [Path("/cache/client")])
    monkeypatch.setattr(login_jars, "cached_jars", lambda name, *_, **__: [Path(f"/cache/{name}")])


def test_only_a_login_with_iam_has_its_jars_on_the_class_path() -> None:
    assert kafka_jars(KafkaProperties({})) == [Path("/cache/client")]
    assert kafka_jars(IAM) == [Path("/cache/client"), Path("/cache/msk-iam")]


def test_a_directory_with_all_of_the_jars_comes_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3SINK_JARS", str(tmp_path))
    for jar in MSK_IAM[1:]:
        (tmp_path / jar.file_name).touch()
    assert msk_iam_jars() == [Path("/cache/msk-iam")]
    (tmp_path / MSK_IAM[0].file_name).touch()
    assert {path.parent for path in msk_iam_jars()} == {tmp_path}


@pytest.mark.parametrize("error", [TransientError("no route to host"), PermissionError("read-only")])
def test_jars_that_can_be_had_nowhere_are_an_error_of_the_configuration(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> list[Path]:
        raise error

    monkeypatch.setattr(login_jars, "cached_jars", fail)
    with pytest.raises(
        ConfigurationError, match=r"needs software\.amazon\.msk:aws-msk-iam-auth:\d.*dependencies"
    ) as found:
        msk_iam_jars()
    assert found.value.exit_code == 7
    assert str(error) in str(found.value)


def test_no_jar_is_also_one_of_spark() -> None:
    of_spark = {path.name.rpartition("-")[0] for path in spark_jars().glob("*.jar")}
    assert not [jar for jar in MSK_IAM if jar.artifact in of_spark]
