"""What the Python workers of a sink import before they are forked: all that a task needs, and no other format."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.codecs.modules import task_modules

_CASES = """
import os, sys
from types import SimpleNamespace
from importlib import import_module
from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.format_section import FormatSpec
from sink_job.codecs.containers import container_encoder
from sink_job.codecs.converters import converter_for, transformed_converter, whole_value_converter
from sink_job.codecs.formats import row_encoder
from sink_job.codecs.modules import task_modules
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.connect.output_settings import DatumSettings
from sink_job.converters.registered import SchemaSettings
from sink_job.spark.daemon import preload
from sink_job.writer.record_pipeline import _envelopes
from sink_job.writer.schema_stores import SchemaStores

def missing(settings, transformed=False):
    for name in task_modules(settings, transforms_registered=transformed):
        import_module(name)
    before = set(sys.modules)
    schemas = SchemaSettings(table=SchemaStores().registered, datums=DatumSettings.of(settings))
    if transformed:
        whole_value_converter(settings.converter, schemas)
        transformed_converter((), settings.output, schemas)
    else:
        converter_for(settings.converter, (), output=settings.output, schemas=schemas)
    row_encoder(settings)
    _envelopes(SimpleNamespace(format=settings, null_values=None))
    if settings.output.has_datums:
        schema = Schema(SchemaType.STRUCT, name="R", fields=(Field("a", Schema(SchemaType.INT32)),))
        container_encoder(settings, schema)("key")
    return sorted(set(sys.modules) - before)

preload()
cases = [(each, OutputFormat.JSON, False) for each in ConverterType if each is not ConverterType.BYTES]
cases += [(ConverterType.BYTES, OutputFormat.BYTES, False), (ConverterType.JSON, OutputFormat.JSON, True)]
cases += [
    (converter, output, converter is ConverterType.AVRO)
    for converter in (ConverterType.JSON, ConverterType.AVRO)
    for output in (OutputFormat.AVRO, OutputFormat.PARQUET)
]
cases = [(*each, False) for each in cases]
registered = [each for each in ConverterType if each.needs_registry]
cases += [(each, output, False, True) for each in registered for output in (OutputFormat.JSON, OutputFormat.PARQUET)]
for converter, output, envelope, transformed in cases:
    if os.fork() == 0:
        found = missing(FormatSpec(converter=converter, output=output, envelope=envelope), transformed)
        if found:
            print(converter, output, envelope, transformed, *found, flush=True)
        os._exit(0)
    os.wait()
print("end")
"""


def test_no_task_of_any_format_imports_a_module() -> None:
    done = subprocess.run([sys.executable, "-c", _CASES], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("end\n", "")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (FormatSpec(), ("sink_job.json.converter",)),
        (
            FormatSpec(converter=ConverterType.AVRO, key_converter=ConverterType.TEXT, envelope=True),
            ("sink_job.avro.converter", "sink_job.envelope.envelope", "sink_job.plain.text"),
        ),
        (
            FormatSpec(output=OutputFormat.PARQUET),
            (
                "sink_job.json.converter",
                "sink_job.json.typed.converter",
                "sink_job.parquet.container",
                "sink_job.parquet.table_reader",
            ),
        ),
    ],
)
def test_only_the_formats_of_the_sink_are_imported(settings: FormatSpec, expected: tuple[str, ...]) -> None:
    assert task_modules(settings) == expected


def test_transforms_of_values_with_the_schema_of_a_registry_import_what_decodes_them() -> None:
    found = task_modules(FormatSpec(converter=ConverterType.PROTOBUF), transforms_registered=True)
    assert found == (
        "sink_job.json.transformed",
        "sink_job.protobuf.converter",
        "sink_job.transforms.decoded.protobuf_values",
    )
