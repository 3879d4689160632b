"""Converters: read the values of records, reject invalid ones, and extract the fields that paths and times need.

One module per converter. A converter reads the values of a batch as one column. It reads single values only where the
column holds an invalid or unusual one. Runs in Spark's Python workers, and in `s3sink simulate`.
"""

from sink_job.api import enums
from sink_job.converters.base import Converted, ValueConverter
from sink_job.converters.bytes import BytesConverter
from sink_job.converters.json import JsonConverter
from sink_job.converters.text import TextConverter

__all__ = ["Converted", "ValueConverter", "converter_for"]


def converter_for(choice: enums.ConverterType, fields: tuple[str, ...]) -> ValueConverter:
    """The converter of type `choice`. It extracts `fields`; the name of a nested field is dotted.

    Raises ValueError for an unsupported type.
    """
    match choice:
        case enums.ConverterType.JSON:
            return JsonConverter(fields)
        case enums.ConverterType.TEXT:
            return TextConverter(fields)
        case enums.ConverterType.BYTES:
            return BytesConverter(fields)
    raise ValueError(f"converter {choice} is not supported")
