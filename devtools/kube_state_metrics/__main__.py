"""`python -m devtools.kube_state_metrics`: builds kube-state-metrics ahead of its first use."""

from __future__ import annotations

import sys

from devtools.kube_state_metrics import kube_state_metrics
from devtools.processes import ServerFailedError

try:
    print(kube_state_metrics())
except ServerFailedError as error:
    sys.exit(str(error))
