"""The parameters of all tasks of a round."""

from __future__ import annotations

from dataclasses import dataclass

from sink_job.api.enums import OnNullValue
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.s3 import S3Settings


@dataclass(frozen=True)
class RoundParameters:
    """Parameters of all tasks of a round. Picklable; contains no secret.

    `settings_json` are the current settings and `settings_record` is the number of the claim that contains them. `root`
    is the ledger's prefix. `now` is the round clock in ms; sizes are bytes. `budget` and `part_buffers` are those of a
    task if `slots` tasks share `memory` bytes; a container with less has a smaller budget. `slots` is None if the
    budget does not depend on the container. `schemas` are the schema ids that the driver has resolved (None: a rebuild,
    which reads all schemas of the ledger's `generation`). `equal_parts`: the sink has equalParts now, whatever the
    settings in `settings_json` have: a rebuilt object gets such parts, which change no byte of it.
    """

    s3: S3Settings
    root: str
    settings_json: str
    settings_record: int
    tolerant: bool
    on_null: OnNullValue
    epoch: int
    round: int
    now: int
    budget: int
    threads: int
    part_buffers: int
    memory: int = 0
    slots: int | None = None
    schemas: KnownSchemas | None = None
    generation: int = 1
    equal_parts: bool = False
