"""Tables of jars."""

from __future__ import annotations

import pytest

from sink_job.spark.jar_table import Jar, jar_table


def test_a_table_alternates_coordinates_and_checksums() -> None:
    assert jar_table("  org.apache:kafka:3.9\n    00ff\n\norg.x:y:1 aa\n") == (
        Jar("org.apache", "kafka", "3.9", "00ff"),
        Jar("org.x", "y", "1", "aa"),
    )
    assert jar_table("") == ()


def test_a_jar_has_the_names_of_maven() -> None:
    jar = Jar("org.apache", "kafka", "3.9", "00ff")
    assert (jar.coordinates, jar.file_name) == ("org.apache:kafka:3.9", "kafka-3.9.jar")


@pytest.mark.parametrize("text", ["org.apache:kafka:3.9", "org.apache:kafka 00ff", "a:b:c:d 00ff"])
def test_a_table_that_is_cut_off_or_has_other_coordinates_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"zip|unpack"):
        jar_table(text)
