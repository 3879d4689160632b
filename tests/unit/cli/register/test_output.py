"""What `s3sink register` prints."""

from __future__ import annotations

import json
from dataclasses import replace

from sink_job.api.errors import TableRolledBack
from sink_job.cli.register.output import as_json, as_text
from sink_job.tables.position import TablePosition
from sink_job.tables.registrations.topic_table import RegistrationOutcome
from sink_job.tables.successors.continuation import Continuation

ADDED = RegistrationOutcome(
    "lake.a", "a", 3, 1_234, 56_789, 2, created=True, position=TablePosition("l", 1, 7, 9), columns=("x",)
)


def test_a_line_says_what_was_added_and_up_to_where() -> None:
    assert as_text(ADDED, dry_run=False) == (
        "lake.a (new table): added 3 objects of topic a with 1,234 records and 56,789 bytes in 2 commits; its "
        "position is record 7 of generation 1"
    )


def test_a_dry_run_says_what_the_first_commit_would_add() -> None:
    assert as_text(ADDED, dry_run=True).endswith(
        "would add 3 objects of topic a with 1,234 records and 56,789 bytes in the first commit"
    )


def test_a_dry_run_says_that_a_table_would_be_continued_in_a_new_one() -> None:
    left = replace(ADDED, objects=0, records=0, bytes=0, commits=1, continued=Continuation("lake.a_2", "l", 7))
    assert as_text(left, dry_run=True).endswith("in the first commit, the last one, and continue in lake.a_2")
    assert json.loads(as_json("s", [(left, None)]))["tables"][0]["continuedIn"] == "lake.a_2"


def test_one_commit_and_the_new_columns_of_a_table_that_existed_are_said() -> None:
    text = as_text(replace(ADDED, created=False, commits=1), dry_run=False)
    assert text.endswith("in 1 commit; its position is record 7 of generation 1; new columns: x")
    many = replace(ADDED, created=False, columns=tuple("abcdefghijkl"))
    assert as_text(many, dry_run=True).endswith("; new columns: a, b, c, d, e, f, g, h, i, j and 2 others")


def test_a_table_without_a_position_has_nothing_to_add() -> None:
    none = RegistrationOutcome("lake.a", "a")
    assert as_text(none, dry_run=False) == "lake.a: nothing to add; it has no position yet"
    assert as_text(none, dry_run=False, accepts=True).endswith(
        "--accept takes effect with new objects: repeat the command then"
    )


def test_json_has_the_error_of_a_table_with_its_reason() -> None:
    found = json.loads(as_json("s", [(ADDED, None), (RegistrationOutcome("lake.b", "b"), TableRolledBack("why"))]))
    assert [each["error"] for each in found["tables"]] == [None, {"reason": "TableRolledBack", "message": "why"}]
    assert found["tables"][0]["newColumns"] == ["x"]
