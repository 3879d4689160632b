"""Values that are written under another schema than their own (`spec.schemaCompatibility`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, runtime_checkable

import msgspec
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.connect.json_encoder import JsonOptions, json_encoder
from sink_job.connect.projection import projector
from sink_job.connect.schema import Schema
from sink_job.converters.base import BatchSource

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


@runtime_checkable
class ProjectingConverter(Protocol):
    """A converter whose values can be written under another schema than their own."""

    def project(self, values: pa.BinaryArray, source: BatchSource, target: Schema) -> pa.BinaryArray:
        """The JSON texts of `values` under the schema `target`.

        `convert` has accepted all of them, none is null, and each has a schema that can be projected to `target`
        (`can_project`).
        """
        ...


@runtime_checkable
class ProjectingDecoder(Protocol):
    """A decoder of `sink_job.converters.registered` whose values can be written under another schema."""

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        """The JSON texts of `payload` under the schema `target`. See `ProjectingConverter.project`."""
        ...


def projected_texts(values: Iterable[object], source: Schema, target: Schema, options: JsonOptions) -> pa.BinaryArray:
    """The JSON texts under `target` of values under `source`, in Connect's data model. Raises RecursionError."""
    project, encode = projector(source, target), json_encoder(target, options)
    return arrow_columns.binaries([_encode(encode(project(value))) for value in values])
