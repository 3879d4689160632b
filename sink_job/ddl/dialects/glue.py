"""AWS Glue: the table as the input of `aws glue create-table --table-input`. Athena and Redshift Spectrum read it."""

from __future__ import annotations

import msgspec

from sink_job.api.enums import OutputFormat
from sink_job.ddl.dialects.hive import (
    INPUT,
    SERDE,
    WRITE_ONLY,
    athena,
    avro_literal,
    hive_columns,
    partition_type,
    projection,
)
from sink_job.ddl.dialects.rendering import PLAIN_NAME
from sink_job.ddl.table import SinkTable, Statement


def glue(table: SinkTable) -> Statement:
    """The JSON. Comments are those of Athena's statement: JSON has none."""
    checked, unused = athena(table), Statement(None)
    paths = [each for each in table.paths if PLAIN_NAME.fullmatch(each.name)]
    serde = SERDE[OutputFormat.BYTES if table.columns is None else table.output]
    parameters = {"field.delim": "\u0001"} if table.columns is None else {"serialization.format": "1"}
    if (literal := avro_literal(table, paths)) is not None:
        parameters["avro.schema.literal"] = literal
    document = {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", **projection(table, paths, unused)},
        "PartitionKeys": [{"Name": each.name.lower(), "Type": partition_type(each)} for each in paths],
        "StorageDescriptor": {
            "Columns": [{"Name": name.lower(), "Type": text} for name, text in hive_columns(table, unused, paths)],
            "Location": table.url(),
            "InputFormat": INPUT[table.output],
            "OutputFormat": WRITE_ONLY[table.output],
            "SerdeInfo": {"SerializationLibrary": serde, "Parameters": parameters},
        },
    }
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return Statement(text, checked.notes, [gap.replace("athena", "glue") for gap in checked.gaps])
