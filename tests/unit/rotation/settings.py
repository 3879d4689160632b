"""Object settings for tests, written like the sections of a manifest."""

from __future__ import annotations

from typing import Any

from sink_job.api.spec import ObjectSettings


def object_settings(
    *,
    format: dict[str, Any] | None = None,  # noqa: A002 - the section's name
    partitioner: dict[str, Any] | None = None,
    rotation: dict[str, Any] | None = None,
    s3: dict[str, Any] | None = None,
    wire_format: dict[str, Any] | None = None,
    null_values: dict[str, Any] | None = None,
) -> ObjectSettings:
    """The settings of a manifest with these sections; everything else has its default."""
    sections = {"format": format, "partitioner": partitioner, "rotation": rotation, "s3": s3, "framing": wire_format}
    sections["nullValues"] = null_values
    return ObjectSettings.model_validate({name: section for name, section in sections.items() if section is not None})
