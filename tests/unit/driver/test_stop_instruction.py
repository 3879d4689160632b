"""What the driver does at SIGTERM, as the operator has set it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sink_job.api.enums import StopAction
from sink_job.driver import signals as module
from sink_job.driver.signals import StopInstruction, StopSignals

TIMEOUT_S = 20


def steps_at_sigterm(instruction: StopInstruction, *, started: bool = True, answer: str | None = None) -> str:
    """The step that SIGTERM runs: `stop` or `publish`. `answer`: of the operator, after the signal."""
    ran: list[str] = []
    done = threading.Event()

    def step(name: str) -> None:
        ran.append(name)
        done.set()

    with StopSignals() as signals:
        signals.on_stop(lambda: step("stop"))
        signals.publish_if(instruction, lambda: step("publish"))
        if started:
            signals.begin()
        os.kill(os.getpid(), signal.SIGTERM)
        if answer is not None:
            instruction.set(answer)
        assert done.wait(TIMEOUT_S)
        assert signals.requested
    return ran[0]


def test_without_an_instruction_the_driver_stops() -> None:
    assert steps_at_sigterm(StopInstruction()) == "stop"


@pytest.mark.parametrize(("answer", "step"), [("Publish", "publish"), ("Exit", "stop")])
def test_a_driver_that_asks_follows_the_answer(answer: str, step: str) -> None:
    instruction = StopInstruction()
    instruction.set("Ask")
    assert steps_at_sigterm(instruction, answer=answer) == step


def test_a_driver_without_an_answer_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.0)
    instruction = StopInstruction()
    instruction.set("Ask")
    assert steps_at_sigterm(instruction) == "stop"


def test_a_driver_that_has_not_claimed_the_ledger_stops_at_once() -> None:
    instruction = StopInstruction()
    instruction.set("Ask")
    assert steps_at_sigterm(instruction, started=False) == "stop"


def test_the_first_answer_after_the_signal_counts() -> None:
    instruction = StopInstruction()
    instruction.set("Ask")
    assert instruction.answered(0) is StopAction.ASK
    for text in ("anything", "Exit", "Publish"):
        instruction.set(text)
    assert instruction.answered(0) is StopAction.EXIT
