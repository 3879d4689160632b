"""What the driver does at SIGTERM. The operator sets it with its polls of `/report`.

A deleted namespace ends the driver at once, and no other pod can be created in it. Only the operator knows why the pod
ends, and the driver has no permissions to ask the API server. So with deletionPolicy Publish the driver continues after
SIGTERM until the operator has answered, for at most `ANSWER_TIMEOUT_S`.
"""

from __future__ import annotations

import threading

from sink_job.api.enums import StopAction

ANSWER_TIMEOUT_S = 10.0
"""Maximum time after SIGTERM without an answer of the operator. The driver then stops without publishing."""


class StopInstruction:
    """The last instruction of the operator. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._action = StopAction.EXIT
        self._stopping = False

    def set(self, text: str) -> None:
        """Sets the action. Unknown text is ignored, so is anything after the answer."""
        if text not in list(StopAction):
            return
        with self._changed:
            if self._stopping and self._action is not StopAction.ASK:
                return
            self._action = StopAction(text)
            self._changed.notify_all()

    def answered(self, timeout_s: float) -> StopAction:
        """The action at SIGTERM; waits for the answer for up to `timeout_s` seconds. ASK without an answer."""
        with self._changed:
            self._stopping = True
            self._changed.wait_for(lambda: self._action is not StopAction.ASK, timeout_s)
            return self._action
