"""`python -m devtools.schema_registry`: builds the schema registry ahead of its first use."""

from __future__ import annotations

import sys

from devtools.processes import ServerFailedError
from devtools.schema_registry import schema_registry_program

try:
    print(schema_registry_program())
except ServerFailedError as error:
    sys.exit(str(error))
