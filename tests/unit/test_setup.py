"""The preparation of a checkout: the settings of uv, and the steps that run side by side."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.console import Show
from devtools.processes import wait_until
from sink_job.engine.cache import cache_dir
from tools import pip_settings, setup, steps
from tools.pip_settings import PipSettings
from tools.setup import PARTS, with_needed
from tools.steps import Report, Step, StepFailedError, command, run_steps


@contextlib.contextmanager
def restored_signal_handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def nothing(report: Report) -> None:
    """The work of a step that has none."""


def test_the_strongest_of_pips_settings_counts() -> None:
    listing = "\n".join(
        [
            "global.index-url='https://files.example/simple'",
            "global.cert='/etc/ca.pem'",
            "install.index-url='https://install.example/simple'",
            ":env:.cert='/run/ca.pem'",
            "freeze.timeout='10'",
        ]
    )
    assert pip_settings.parse(listing) == PipSettings(
        {"index-url": "https://install.example/simple", "cert": "/run/ca.pem"}
    )


def test_uv_gets_the_indexes_and_certificates_of_pip(tmp_path: Path) -> None:
    settings = pip_settings.parse(
        "global.index-url='https://a.example/simple'\n"
        "global.extra-index-url='\\nhttps://b.example/simple\\nhttps://c.example/simple'\n"
        "global.trusted-host='a.example b.example'\n"
        f"global.find-links='{tmp_path} /no/such/folder https://d.example/files'\n"
        "global.no-index='false'\n"
        ":env:.default-timeout='180'\n"
        ":env:.cert='/etc/ca.pem'\n"
    )
    assert settings.uv_environment({}) == {
        "UV_DEFAULT_INDEX": "https://a.example/simple",
        "UV_INDEX": "https://b.example/simple https://c.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "a.example b.example",
        "UV_HTTP_TIMEOUT": "180",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }
    assert settings.uv_options() == ["--find-links", str(tmp_path), "--find-links", "https://d.example/files"]


def test_settings_that_the_user_made_for_uv_stay() -> None:
    settings = PipSettings({"index-url": "https://a.example/simple", "cert": "/etc/ca.pem"})
    assert settings.uv_environment({"UV_INDEX_URL": "https://uv.example/simple", "SSL_CERT_FILE": "/uv.pem"}) == {}


def test_steps_run_side_by_side_and_after_the_steps_they_need() -> None:
    together = threading.Barrier(2)
    order: list[str] = []

    def meet(report: Report) -> None:
        together.wait(10)
        order.append("both")

    run_steps(
        "test",
        {"last": Step(lambda report: order.append("last"), after=["a", "b"]), "a": Step(meet), "b": Step(meet)},
        out=io.StringIO(),
    )
    assert order == ["both", "both", "last"]


def test_a_step_that_takes_long_is_reported_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PROGRESS_SECONDS", 0.05)
    out = io.StringIO()

    def work(report: Report) -> None:
        report("compiling")
        wait_until(lambda: out.getvalue().count("s3-server (compiling)\n") >= 3, "three lines", seconds=30)

    run_steps("setup", {"s3-server": Step(work)}, out=out)
    assert out.getvalue().count("setup: 0 s: s3-server (compiling)\n") >= 3


def test_a_step_that_fails_ends_the_others_and_shows_its_output(tmp_path: Path) -> None:
    writes_its_id = "import os, time; open('id.new', 'w').write(str(os.getpid())); os.replace('id.new', 'id')"
    waits_for_it = "import pathlib, time\nwhile not pathlib.Path('id').exists(): time.sleep(0.01)"
    failing = [sys.executable, "-c", f"{waits_for_it}\nprint('no such file')\nraise SystemExit(3)"]
    sleeping = [sys.executable, "-c", f"{writes_its_id}; time.sleep(600)"]
    with pytest.raises(StepFailedError, match=r"(?s)ended with exit code 3:\nno such file"):
        run_steps(
            "setup",
            {
                "failing": Step(command(failing, cwd=tmp_path)),
                "sleeping": Step(command(sleeping, cwd=tmp_path)),
                "never": Step(nothing, after=["sleeping"]),
            },
            out=io.StringIO(),
        )
    assert not Path(f"/proc/{(tmp_path / 'id').read_text()}").exists()


def test_a_step_that_waits_for_a_missing_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="lost wait for steps that are not there"):
        run_steps("setup", {"lost": Step(nothing, after=["missing"])}, out=io.StringIO())


def test_a_step_that_fails_as_the_cache_cannot_be_written_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("S3SINK_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(sys, "argv", ["setup", "s3-server"])
    monkeypatch.setitem(PARTS, "s3-server", Step(lambda report: cache_dir().mkdir()))
    with restored_signal_handlers():
        assert setup.main() == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"setup: the cache {tmp_path}/file/cache cannot be written (Not a directory): "
        "set S3SINK_CACHE to another directory"
    )


@pytest.mark.parametrize("python", ["#!/bin/sh\nexit 1\n", None], ids=["no pip", "no Python"])
def test_an_environment_whose_creation_was_interrupted_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str | None
) -> None:
    """Installation stops here, after .venv is created: no program installs packages in this test."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "target")
    if python is not None:
        (tmp_path / "target").write_text(python)
        (tmp_path / "target").chmod(0o755)
    for name, path in (("VENV", tmp_path), ("PYTHON", tmp_path / "bin" / "python"), ("STAMP", tmp_path / "stamp")):
        monkeypatch.setattr(setup, name, path)
    created: list[list[str]] = []

    def create(folder: Path, *, with_pip: bool, symlinks: bool) -> None:
        created.append(sorted(path.name for path in folder.iterdir()))
        raise InterruptedError

    monkeypatch.setattr("venv.create", create)
    with pytest.raises(InterruptedError):
        setup.install(lambda text: None)
    assert created == [[".setup-lock"]]


def test_python_is_not_copied_into_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is a busy file for the system while any process that was started meanwhile has it open."""
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr("venv.EnvBuilder._setup_pip", lambda builder, context: None)
    setup._create()
    assert all((tmp_path / "bin" / name).is_symlink() for name in ("python", "python3"))


def test_pip_does_not_replace_a_uv_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(report: Report) -> Path:
        steps.end_processes()
        raise StepFailedError("uv ended with exit code -2")

    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup, "up_to_date", lambda: False)
    monkeypatch.setattr(setup, "_has_pip", lambda: True)
    monkeypatch.setattr(setup, "_uv", interrupted)
    with pytest.raises(StepFailedError, match="exit code -2"):
        run_steps("setup", {"packages": Step(setup.install)}, out=io.StringIO())
    assert capsys.readouterr().err == ""


def test_each_part_of_the_setup_needs_only_packages_and_other_parts() -> None:
    assert {name for part in PARTS.values() for name in part.after} <= {"packages", *PARTS}


def test_a_part_comes_with_the_steps_it_needs_and_no_others() -> None:
    assert with_needed(["kubernetes", "s3-server"]) == {"kubernetes", "s3-server"}
    assert with_needed(["class-archive"]) == {"class-archive", "jars", "packages"}


def test_programs_are_built_by_modules_that_need_no_package() -> None:
    code = (
        "import sys, devtools.versitygw, devtools.kube.build\n"
        "files = [getattr(module, '__file__', '') for module in sys.modules.values()]\n"
        "print([file for file in files if 'site-packages' in str(file)])"
    )
    output: list[str] = []
    root = Path(__file__).resolve().parents[2]
    steps.run_process([sys.executable, "-S", "-c", code], output.append, cwd=root)
    assert output == ["[]"]


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"S3SINK_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/s3sink"),
        ({}, "/home/u/.cache/s3sink"),
    ],
)
def test_the_cache_belongs_to_the_user_and_not_to_the_checkout(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("S3SINK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/u"} | variables).items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(folder)


def test_the_demo_reports_a_long_step_where_no_terminal_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.console._REPORT_EVERY_S", 0.05)
    show, printed = Show(), ""

    def reports(what: str) -> int:
        nonlocal printed
        printed += capsys.readouterr().out
        return printed.count(f"   {what}")

    with show.spinner("verifying"):
        wait_until(lambda: reports("verifying: ") >= 2, "two reports", seconds=60)
    with show.bar("producing", 10, "flights") as advance:

        def is_reported() -> bool:
            advance(4)
            return reports("producing: 4 of 10 flights after ") > 0

        wait_until(is_reported, "a report", seconds=60)
