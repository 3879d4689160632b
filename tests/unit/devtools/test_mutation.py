"""The mutator: what it changes, that a mutant runs in a child alone, and which level is reported."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import Phase

from devtools.mutation import results
from devtools.mutation.apply import NotApplicable, apply, undo
from devtools.mutation.operators import Mutant, mutants
from devtools.mutation.selection import unit_tests_of
from devtools.mutation.trial import Limits, Outcome, in_child, preload, unit_tests

LIMITS = Limits(cpu_s=30, real_s=300)

SOURCE = '''
"""Text 1."""
LIMIT = 5

def first(numbers, limit=LIMIT):
    """Text 2."""
    found = [each for each in numbers if each < limit]
    if not found:
        raise ValueError(f"nothing below {limit - 1}")
    return found[0]

class Counter:
    def __init__(self):
        self.count = 3

    def add(self):
        self.count += 1
        return self.count
'''

Load = Callable[[str], tuple[ModuleType, Path]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Makes a module of a text; returns it and its file."""
    names = []

    def loaded(source: str) -> tuple[ModuleType, Path]:
        path = tmp_path / "mutated_module.py"
        path.write_text(source)
        module = ModuleType("mutated_module")
        exec(compile(source, str(path), "exec"), vars(module))
        sys.modules[module.__name__] = module
        names.append(module.__name__)
        return module, path

    yield loaded
    for name in names:
        sys.modules.pop(name, None)


def _found(path: Path) -> list[Mutant]:
    return mutants(path, path.parent)


def _one(path: Path, operator: str, function: str) -> Mutant:
    return next(each for each in _found(path) if (each.operator, each.function) == (operator, function))


def test_each_place_of_a_function_is_changed_and_nothing_else(load: Load) -> None:
    _, path = load(SOURCE)
    assert [(each.line, each.function, each.operator) for each in _found(path)] == [
        (7, "first", "filter removed"),
        (7, "first", "comparison"),
        (8, "first", "not removed"),
        (10, "first", "returns None"),
        (10, "first", "+1"),
        (10, "first", "-1"),
        (14, "Counter.__init__", "statement removed"),
        (14, "Counter.__init__", "+1"),
        (14, "Counter.__init__", "-1"),
        (17, "Counter.add", "statement removed"),
        (17, "Counter.add", "+1"),
        (17, "Counter.add", "-1"),
        (18, "Counter.add", "returns None"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a <= b", "a < b"),
        ("a is not b", "a is b"),
        ("a and b", "a or b"),
        ("not a", "a"),
        ("a + b", "a - b"),
        ("1 if a else 2", "1 if not a else 2"),
        ("True", "False"),
        ("min(a, b)", "max"),
    ],
)
def test_an_expression_has_its_mutant(load: Load, before: str, after: str) -> None:
    _, path = load(f"def f(a, b):\n    x = {before}\n")
    assert after in {each.after for each in _found(path)}


def test_logging_and_messages_of_errors_are_not_mutated(load: Load) -> None:
    _, path = load("def f(a):\n    LOG.info('a %s', a + 1)\n    raise ValueError(a + 1)\n")
    assert _found(path) == []


def test_a_mutant_runs_wherever_its_function_is_referenced_and_is_undone(load: Load) -> None:
    module, path = load(SOURCE)
    first = module.first
    exchanged = apply(_one(path, "comparison", "first"), path.parent)
    assert first([5, 3]) == 5
    undo(exchanged)
    assert first([5, 3]) == 3


def test_a_mutant_writes_no_file(load: Load) -> None:
    _, path = load(SOURCE)
    apply(_one(path, "statement removed", "Counter.add"), path.parent)
    assert path.read_text() == SOURCE
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_function_that_is_not_loaded_is_not_applicable(load: Load, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("def f(a):\n    return a + 1\n")
    with pytest.raises(NotApplicable, match="no function f is loaded"):
        apply(_found(other)[0], tmp_path)


def test_a_mutant_of_another_version_of_the_file_is_rejected(load: Load) -> None:
    _, path = load(SOURCE)
    mutant = _one(path, "comparison", "first")
    path.write_text("def first():\n    return 1 + 1\n")
    with pytest.raises(LookupError, match="has changed"):
        apply(mutant, path.parent)


def test_the_example_of_a_failing_property_test_is_not_shrunk(tmp_path: Path) -> None:
    """Shrinking would take more time than a mutant has."""
    calls = tmp_path / "calls"
    (tmp_path / "test_property.py").write_text(
        f"""
from hypothesis import given
from hypothesis import strategies as st

@given(st.lists(st.integers(), min_size=20))
def test_fails(numbers):
    with open({str(calls)!r}, "a") as file:
        file.write("x")
    assert False
"""
    )
    outcome = unit_tests(None, [str(tmp_path / "test_property.py")], tmp_path, LIMITS)
    assert (outcome.result, outcome.by.split("::")[-1]) == ("caught", "test_fails")
    assert len(calls.read_text()) <= 3


def test_a_preloaded_property_test_has_the_settings_of_the_mutation_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "preloaded_property.py").write_text(
        """
from hypothesis import given
from hypothesis import strategies as st

@given(st.integers())
def test_passes(number):
    pass
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def child() -> Outcome:
        preload(["preloaded_property"])
        found = sys.modules["preloaded_property"].test_passes._hypothesis_internal_use_settings
        return Outcome(f"{found.deadline} {found.max_examples} {Phase.shrink in found.phases}")

    assert in_child(child, LIMITS) == Outcome("None 20 False")


def test_a_property_test_does_not_fail_because_its_examples_are_rare(tmp_path: Path) -> None:
    (tmp_path / "test_property.py").write_text(
        """
from hypothesis import given
from hypothesis import strategies as st

@given(st.integers(0, 10_000).filter(lambda n: n % 50 == 7))
def test_passes(number):
    assert number % 50 == 7
"""
    )
    assert unit_tests(None, [str(tmp_path / "test_property.py")], tmp_path, LIMITS) == Outcome("missed")


def test_a_mutant_of_a_child_does_not_reach_the_parent(load: Load) -> None:
    module, path = load(SOURCE)

    def child() -> Outcome:
        apply(_one(path, "comparison", "first"), path.parent)
        return Outcome("caught", str(module.first([5, 3])), 7)

    assert in_child(child, LIMITS) == Outcome("caught", "5", 7)
    assert module.first([5, 3]) == 3


def test_a_child_without_an_end_is_ended_by_its_processor_time() -> None:
    def child() -> Outcome:
        return Outcome("missed", str(sum(itertools.count())))

    assert in_child(child, Limits(cpu_s=1, real_s=300)) == Outcome("time limit")


def test_a_child_that_is_killed_has_caught_its_mutant() -> None:
    def child() -> Outcome:
        os.kill(os.getpid(), signal.SIGKILL)
        return Outcome("missed")

    assert in_child(child, LIMITS).result == "caught"


def test_an_error_of_the_mutator_is_no_catch() -> None:
    def child() -> Outcome:
        raise ValueError("of the mutator")

    assert in_child(child, LIMITS) == Outcome("not applicable", "the trial ended without a result")


def test_a_child_that_waits_for_ever_is_ended() -> None:
    def child() -> Outcome:
        sys.modules["threading"].Event().wait()
        return Outcome("missed")

    assert in_child(child, Limits(cpu_s=30, real_s=0.2)) == Outcome("time limit")


def test_a_child_whose_time_ends_before_it_has_a_process_group_is_ended() -> None:
    def child() -> Outcome:
        sys.modules["threading"].Event().wait()
        return Outcome("missed")

    assert in_child(child, Limits(cpu_s=30, real_s=0)) == Outcome("time limit")


def test_a_child_of_a_process_with_many_open_files_is_read() -> None:
    """select() takes no file descriptor above 1023."""
    opened: list[int] = []
    try:
        with contextlib.suppress(OSError):  # with a limit of 1,024 there are no such file descriptors
            while not opened or opened[-1] < 1040:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        for each in opened[-4:]:
            os.close(each)
            opened.remove(each)
        assert in_child(lambda: Outcome("missed"), LIMITS) == Outcome("missed")
    finally:
        for each in opened:
            os.close(each)


def test_the_tests_of_a_module_are_those_that_reach_it_and_the_one_with_its_name_is_first(tmp_path: Path) -> None:
    for name, text in {
        "sink_job/ledger/state.py": "",
        "sink_job/ledger/store.py": "from sink_job.ledger import state",
        "tests/unit/driver/test_a.py": "from sink_job.ledger.state import x",
        "tests/unit/ledger/test_a.py": "from sink_job.ledger.store import x",
        "tests/unit/ledger/test_other.py": "import sys",
        "tests/unit/ledger/test_state.py": "from sink_job.ledger import state",
        "tests/unit/writer/test_a.py": "from sink_job.ledger.store import x",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert unit_tests_of("sink_job/ledger/state.py", tmp_path) == [
        "tests/unit/ledger/test_state.py",
        "tests/unit/driver/test_a.py",
        "tests/unit/ledger/test_a.py",
    ]


def test_results_are_read_up_to_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "build/mutants.jsonl"
    results.append(path, {"level": "unit"})
    with path.open("a") as file:
        file.write('{"level": "si')
    assert results.read(path) == [{"level": "unit"}]


def test_a_mutant_that_was_tried_again_has_its_last_result() -> None:
    first = {"name": "a.py:3#1", "source": "1", "level": "survivor"}
    assert results.latest([first, {**first, "source": "2"}, {**first, "level": "unit"}]) == [
        {**first, "level": "unit"},
        {**first, "source": "2"},
    ]


def test_the_tables_count_levels_and_list_survivors() -> None:
    fields = {
        "line": 3,
        "function": "f",
        "operator": "comparison",
        "before": "a | b",
        "after": "a & b",
        "seeds": 4,
        "by": "",
    }
    found = [
        {**fields, "path": "sink_job/ledger/a.py", "level": "unit"},
        {**fields, "path": "sink_job/writer/b.py", "level": "simulation"},
        {**fields, "path": "sink_job/writer/b.py", "level": "survivor"},
        {**fields, "path": "sink_job/writer/b.py", "level": "not applicable"},
    ]
    assert results.levels_table(found)[2:] == [
        "| ledger | 1 | 1 | 0 | 0 |",
        "| writer | 2 | 0 | 1 | 1 |",
        "| all | 3 | 1 | 1 | 1 |",
    ]
    assert results.seeds_of(found) == [4]
    assert results.survivors(found)[2:] == [
        "| sink_job/writer/b.py:3 | `f` | comparison | `a \\| b` → `a & b` | passed |"
    ]
