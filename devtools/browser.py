"""A headless Chromium, controlled by the Chrome DevTools Protocol (https://chromedevtools.github.io/devtools-protocol/)."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import websocket

from devtools.processes import LOOPBACK, ServerFailedError, wait_until

_TIMEOUT_S = 60


class Tab:
    """A tab of Chromium. `errors` has what its console and its requests reported as errors, by all pages so far."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol. Raises ServerFailedError if it fails."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise ServerFailedError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message.get("method", ""), message.get("params", {}))

    def value(self, script: str) -> Any:
        """The value of an expression of JavaScript, of a promise its result. Raises ServerFailedError if it throws."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise ServerFailedError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def open(self, url: str) -> None:
        """Opens a page and waits until it is loaded."""
        self.call("Page.navigate", url="about:blank")
        wait_until(lambda: self.value("location.href") == "about:blank", "an empty page", seconds=_TIMEOUT_S)
        self.call("Page.navigate", url=url)
        loaded = "location.href != 'about:blank' && document.readyState == 'complete'"
        wait_until(lambda: bool(self.value(loaded)), url, seconds=_TIMEOUT_S)

    def size(self, width: int, height: int) -> None:
        """The size of the page in CSS pixels; below 500 as that of a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def picture(self, file: Path) -> None:
        """Writes a screenshot of what is visible, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.errors.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] == "error":
            self.errors.append(str([argument.get("value", argument) for argument in event["args"]]))


@contextlib.contextmanager
def tab(program: str) -> Iterator[Tab]:
    """A tab of a new Chromium without access to hosts other than loopback."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as work:
        flags = ["--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", f"--user-data-dir={work}"]
        flags += ["--remote-debugging-port=0", "--hide-scrollbars", "--disable-background-networking"]
        flags += [f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {LOOPBACK}", "about:blank"]
        log = Path(work, "log")
        with log.open("w") as output:
            process = subprocess.Popen(
                [program, *flags], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            port = Path(work, "DevToolsActivePort")
            wait_until(
                lambda: port.exists() and len(port.read_text().splitlines()) > 1,
                "Chromium",
                seconds=_TIMEOUT_S,
                unless=lambda: log.read_text()[-2000:] if process.poll() is not None else None,
            )
            with urlopen(f"http://{LOOPBACK}:{port.read_text().splitlines()[0]}/json/list") as answer:
                url = next(page["webSocketDebuggerUrl"] for page in json.load(answer) if page["type"] == "page")
            connection = websocket.create_connection(url, timeout=_TIMEOUT_S, suppress_origin=True)
            with contextlib.closing(connection):
                yield Tab(connection)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
