"""The URL of the other directory."""

from __future__ import annotations

import pytest

from sink_job.compare.location import Location


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://lake/topics", ("lake", "topics")),
        ("s3://lake/raw/topics/", ("lake", "raw/topics")),
        ("s3a://lake", ("lake", "")),
        ("s3://lake/", ("lake", "")),
    ],
)
def test_bucket_and_directory_are_parsed(url: str, expected: tuple[str, str]) -> None:
    assert Location.parse(url) == expected


def test_it_is_shown_as_a_url() -> None:
    assert str(Location.parse("s3a://lake/topics/")) == "s3://lake/topics"


@pytest.mark.parametrize("url", ["s3://u:hunter2@lake/topics", "https://hunter2@lake/x"])
def test_a_login_is_an_error_that_does_not_show_it(url: str) -> None:
    with pytest.raises(ValueError, match="has a login: use s3://BUCKET/DIRECTORY") as found:
        Location.parse(url)
    assert "hunter2" not in str(found.value)


def test_a_directory_can_have_the_character_of_logins() -> None:
    assert Location.parse("s3://lake/a@b").directory == "a@b"


@pytest.mark.parametrize("url", ["lake/topics", "s3:///topics", "https://lake/topics", ""])
def test_another_text_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match="is not s3://BUCKET/DIRECTORY"):
        Location.parse(url)
