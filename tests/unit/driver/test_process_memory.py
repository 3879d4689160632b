"""Peak memory of the processes of a run."""

from __future__ import annotations

from pathlib import Path

from sink_job.driver.process_memory import PeakRss, peak_rss


def process(proc: Path, pid: int, parent: int, name: str, peak_kib: int) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
    (folder / "status").write_text(f"Name:\t{name}\nVmHWM:\t  {peak_kib} kB\nVmRSS:\t 1 kB\n")


def test_the_jvm_and_the_largest_worker_are_found_among_all_descendants(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, "s3sink", 999)
    process(tmp_path, 11, 10, "java", 500)
    process(tmp_path, 12, 11, "python3.11", 20)
    process(tmp_path, 13, 12, "python3.11", 300)
    process(tmp_path, 14, 1, "java", 9_999)
    assert peak_rss(10, tmp_path) == PeakRss(jvm=500 << 10, python=300 << 10)


def test_a_process_name_with_brackets_is_parsed(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, "s3sink", 999)
    process(tmp_path, 11, 10, "a) (b", 500)
    process(tmp_path, 12, 11, "java", 70)
    assert peak_rss(10, tmp_path).jvm == 70 << 10


def test_memory_is_unknown_without_proc(tmp_path: Path) -> None:
    assert peak_rss(10, tmp_path / "absent") == PeakRss(None, None)
