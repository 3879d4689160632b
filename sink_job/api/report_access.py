"""What a request for a driver's report carries. This module imports nothing, so every command can import it."""

from __future__ import annotations

from typing import Final

REPORT_TOKEN_VARIABLE: Final = "S3SINK_REPORT_TOKEN"
"""Environment variable of a driver: the token that `/report` and `/metrics` require; without it they require none."""
AT_STOP: Final = "atStop"
"""Query parameter of `/report`: the `StopAction` of the driver, set by the operator."""
LIMIT: Final = "limit"
"""Query parameter of `/report`: the maximum number of topic-partitions in it. The rest is in sums."""
MAX_REPORTED: Final = 5_000
"""The topic-partitions of a report that the operator reads: as many as a status has committed offsets."""
