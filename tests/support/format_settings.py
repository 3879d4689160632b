"""Settings of a format that a manifest cannot have."""

from __future__ import annotations

from sink_job.api.sections.format_section import FormatSpec


def with_blocks(settings: FormatSpec, size: int) -> FormatSpec:
    """The settings with blocks and row groups of `size` bytes."""
    parquet = settings.parquet and settings.parquet.model_copy(update={"row_group": size})
    avro = settings.avro and settings.avro.model_copy(update={"block": size})
    return settings.model_copy(update={"parquet": parquet, "avro": avro})
