"""`python -m devtools.kube_router`: builds kube-router ahead of its first use."""

from __future__ import annotations

import sys

from devtools.kube_router import kube_router
from devtools.processes import ServerFailedError

try:
    print(kube_router())
except ServerFailedError as error:
    sys.exit(str(error))
