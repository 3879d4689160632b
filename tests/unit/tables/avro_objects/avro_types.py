"""Types that a table cannot have from Avro objects."""

from __future__ import annotations

from typing import Final

NOT_READ_FROM_AVRO: Final = {
    "decimal_64": "a decimal with the precision 64 and the scale 2",
    "time_millis": "the logical type time-millis on int",
    "timestamp_nanos": "the logical type timestamp-nanos on long",
    "local_timestamp_millis": "the logical type local-timestamp-millis on long",
    "local_timestamp_micros": "the logical type local-timestamp-micros on long",
    "local_timestamp_nanos": "the logical type local-timestamp-nanos on long",
    "uuid": "the logical type uuid on string",
    "union": "a union other than null and one type",
}
"""The cases of types that a table cannot have from Avro objects, and how the error calls them."""
