"""Instants written as texts, and zones in which clocks do odd things."""

from __future__ import annotations

from datetime import UTC, datetime

ZONES = [
    "UTC",
    "+05:30",
    "-09:30",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # midnight was skipped in spring
    "America/Havana",  # midnight comes twice in autumn
    "America/St_Johns",  # changed at one minute past midnight
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # skipped a day
    "Africa/Monrovia",  # 44 and a half minutes off until 1972
    "Asia/Kathmandu",
]


def at(text: str) -> int:
    """Milliseconds since the epoch of a UTC time such as 2024-03-31T01:00."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
