"""`python -m devtools.versitygw`: builds VersityGW ahead of its first use."""

from __future__ import annotations

import sys

from devtools.processes import ServerFailedError
from devtools.versitygw import versitygw_binary, versitygw_possible

if not versitygw_possible():
    print("go is not on PATH: the demo uses moto, and tests of data fail", file=sys.stderr)
else:
    try:
        print(versitygw_binary())
    except ServerFailedError as error:
        sys.exit(str(error))
