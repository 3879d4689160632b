"""`python -m devtools.docs_site`: the documentation site in build/site.

`python -m devtools.docs_site mike deploy …` publishes it with mike, in the branch gh-pages (docs/release.md).
"""

from __future__ import annotations

import sys

from devtools.docs_site.build import ROOT, build, run
from devtools.processes import ServerFailedError

try:
    if sys.argv[1:2] == ["mike"]:
        done = run("mike", *sys.argv[2:])
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(done.returncode)
    build(ROOT / "build" / "site")
    print(f"docs: {ROOT / 'build' / 'site'}; `python3 -m http.server -d build/site` serves it with its search")
except ServerFailedError as error:
    sys.exit(str(error))
