"""A dashboard of Grafana in a headless Chromium, drawn by `dashboard.html` with the data of a Prometheus."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devtools.browser import tab
from devtools.chromium import chromium
from devtools.processes import ServerFailedError, wait_until

_PAGE = Path(__file__).with_name("dashboard.html")
_SIZE = 1600, 1960
_TIMEOUT_S = 120
_DONE = "document.body && (document.body.dataset.panels || document.body.dataset.error)"


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
        raise ServerFailedError("there is no chromium: python -m devtools.chromium")
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
        with tab(program) as opened:
            opened.size(*_SIZE)
            opened.open(page.as_uri())
            wait_until(lambda: bool(opened.value(_DONE)), "the drawn dashboard", seconds=_TIMEOUT_S)
            panels, error = opened.value("[document.body.dataset.panels, document.body.dataset.error]")
            if picture is not None:
                opened.picture(picture)
    if error is not None:
        raise ServerFailedError(f"the dashboard was not drawn: {error}")
    return int(panels)
