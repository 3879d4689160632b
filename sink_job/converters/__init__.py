"""Bytes in: what a record's value is, whether it is sound, and the fields of it that paths and times need.

One file for each converter. A converter looks at a batch's values as one column and refuses rows one by one only where
something is wrong.
"""

from sink_job.api import enums
from sink_job.converters.base import Converted, ValueConverter
from sink_job.converters.bytes import BytesConverter
from sink_job.converters.json import JsonConverter
from sink_job.converters.text import TextConverter

__all__ = ["Converted", "ValueConverter", "converter_for"]


def converter_for(choice: enums.ConverterType, fields: tuple[str, ...]) -> ValueConverter:
    """The converter that the spec names, made to give these `fields` (dotted where nested).

    Raises ValueError for one that is not built.
    """
    match choice:
        case enums.ConverterType.JSON:
            return JsonConverter(fields)
        case enums.ConverterType.TEXT:
            return TextConverter(fields)
        case enums.ConverterType.BYTES:
            return BytesConverter(fields)
    raise ValueError(f"converter {choice} is not built yet")
