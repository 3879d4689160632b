"""The check of words finds what the glossary replaces, and leaves standard phrases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_words

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split("## Replaced words")[1]
UNCHECKED = {"share of a task", "try", "look (noun)", "by column", "one by one (of values)"}
"""Words that are also English in their standard sense: a reader has to notice them."""
WORDS = [
    word.strip().replace("_x", "_RECORDS").replace("« »", "«")  # words: allow
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| not |")
    for word in line.split("|")[1].split(",")
]


def found(tmp_path: Path, line: str) -> list[str]:
    file = tmp_path / "page.md"
    file.write_text(line, encoding="utf-8")
    return list(check_words.findings(file))


@pytest.mark.parametrize("word", [word for word in WORDS if word not in UNCHECKED])
def test_a_word_that_the_glossary_replaces_is_found(tmp_path: Path, word: str) -> None:
    assert found(tmp_path, f"The sink {word} it.")


@pytest.mark.parametrize(
    "line",
    [
        "Connection refused",
        "a port that refuses connections",
        "a part of the file.tell()",
        "MessagePack",
        "decode a message_pack value",
    ],
)
def test_a_standard_phrase_is_no_finding(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line) == []
