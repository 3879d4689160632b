"""`python -m devtools.argocd`: builds Argo CD's health check ahead of its first use."""

from __future__ import annotations

import sys

from devtools.argocd import argocd_customization
from devtools.processes import ServerFailedError

try:
    print(argocd_customization())
except ServerFailedError as error:
    sys.exit(str(error))
