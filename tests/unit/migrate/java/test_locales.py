"""Names in paths, compared with those of Java."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sink_job.api.units.date_pattern import pattern_elements
from sink_job.migrate.java.locales import SAME_NAMES, is_root, is_same_zone_name, named_fields, with_root_names
from sink_job.partitioning.date_format import compile_elements
from sink_job.partitioning.time_zones import DAY, zone

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")

NAMES = "MMM/MMMM/EEE/EEEE/a"
NO_LANGUAGES = ["en-US", "ko-KR", "pt_BR", "de_DE", "nowhere", "us"]
TIMES = [month * 30 * DAY + month * DAY + month % 2 * DAY // 2 for month in range(12)]
SOURCE = """
import java.text.DateFormatSymbols;
import java.util.*;

public class Names {
    public static void main(String[] languages) {
        for (String language : languages) {
            DateFormatSymbols names = DateFormatSymbols.getInstance(new Locale(language));
            List<String> all = new ArrayList<>();
            for (int month = 0; month < 12; month++) {
                Calendar at = new GregorianCalendar(TimeZone.getTimeZone("UTC"));
                at.setTimeInMillis(((long) month * 31 * 24 + month % 2 * 12) * 3600000L);
                all.add(String.join("/",
                    names.getShortMonths()[at.get(Calendar.MONTH)], names.getMonths()[at.get(Calendar.MONTH)],
                    names.getShortWeekdays()[at.get(Calendar.DAY_OF_WEEK)],
                    names.getWeekdays()[at.get(Calendar.DAY_OF_WEEK)],
                    names.getAmPmStrings()[at.get(Calendar.AM_PM)]));
            }
            System.out.println(String.join("|", all));
        }
    }
}
"""


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The names of Java: of twelve times, by the text of the locale."""
    file: Path = tmp_path_factory.mktemp("names") / "Names.java"
    file.write_text(SOURCE)
    asked = [*sorted(SAME_NAMES), *NO_LANGUAGES]
    command = ["java", "-Xmx256m", "-Dsun.stdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", str(file), *asked]
    answer = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return dict(zip(asked, answer.stdout.splitlines(), strict=True))


def names(pattern: str, locale: str) -> str:
    text = compile_elements(pattern_elements(pattern), zone=zone("UTC"), locale=locale)
    return "|".join(text(each) for each in TIMES)


def test_the_names_of_known_languages_are_those_of_java(java: dict[str, str]) -> None:
    differ = {each: (java[each], names(NAMES, each)) for each in sorted(SAME_NAMES) if java[each] != names(NAMES, each)}
    assert differ == {}


def test_a_locale_that_java_does_not_have_has_short_english_names(java: dict[str, str]) -> None:
    assert {java[each] for each in NO_LANGUAGES} == {names(with_root_names(NAMES), "en")}


def test_a_text_that_is_no_language_is_the_root_locale() -> None:
    assert all(is_root(each) for each in NO_LANGUAGES)
    assert not any(is_root(each) for each in (*SAME_NAMES, "de", "KO", "nl", "iw"))


def test_quoted_text_keeps_its_letters() -> None:
    assert with_root_names("'MMMM'''MMMM'EEEE'EEEEE/dd") == "'MMMM'''MMM'EEEE'EEE/dd"


def test_the_fields_that_depend_on_the_locale_are_found() -> None:
    assert named_fields("'M'MM/MMM/E/a/z/Z/HH") == ["MMM", "E", "a", "z"]
    assert named_fields("'open") == []


def test_the_name_utc_is_the_same() -> None:
    assert is_same_zone_name("z", "UTC")
    assert not is_same_zone_name("zzzz", "UTC")
    assert not is_same_zone_name("z", "Europe/Berlin")
