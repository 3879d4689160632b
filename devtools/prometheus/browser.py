"""A dashboard of Grafana in a headless Chromium, drawn by `dashboard.html` with the data of a Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devtools.browser import chromium
from devtools.processes import ServerFailedError

_PAGE = Path(__file__).with_name("dashboard.html")
_SIZE = "1600,1960"
_TIMEOUT_S = 120
_RESULT = re.compile(r'<body[^>]* data-(panels|error)="([^"]*)"')


def drawn_panels(
    dashboard: Mapping[str, Any],
    url: str,
    *,
    start: float,
    end: float,
    variables: Mapping[str, str],
    picture: Path | None = None,
) -> int:
    """Opens the dashboard from `start` to `end` (s since the epoch) and returns the number of panels with data.

    `variables`: what replaces texts in queries. `picture`: where to write a screenshot. Raises `ServerFailedError` if
    the browser fails or a query is rejected.
    """
    program = chromium()
    if program is None:
        raise ServerFailedError("no chromium on PATH")
    settings = {
        "dashboard": dashboard,
        "url": url,
        "start": start,
        "end": end,
        "step": max(1, round((end - start) / 200)),
        "variables": variables,
    }
    with tempfile.TemporaryDirectory(prefix="dashboard-") as work:
        page = Path(work, "dashboard.html")
        page.write_text(_PAGE.read_text().replace("= SETTINGS;", f"= {json.dumps(settings)};"))
        flags = ["--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={work}/profile"]
        flags += [f"--window-size={_SIZE}", "--hide-scrollbars", "--virtual-time-budget=20000"]
        shot = [] if picture is None else [f"--screenshot={picture}"]
        command = [program, *flags, *shot, "--dump-dom", f"file://{page}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    found = _RESULT.search(done.stdout)
    if found is None or found[1] == "error":
        raise ServerFailedError(f"the dashboard was not drawn: {found[2] if found else done.stderr[-2000:]}")
    return int(found[2])
