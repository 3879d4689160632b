"""`python -m devtools.prometheus`: builds promtool and Prometheus ahead of their first use."""

from __future__ import annotations

import sys

from devtools.processes import ServerFailedError
from devtools.prometheus import prometheus_programs

try:
    print(prometheus_programs().promtool.parent)
except ServerFailedError as error:
    sys.exit(str(error))
