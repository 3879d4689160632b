"""`python -m devtools.chaos --real`: chaos with processes, a real broker and a real S3 server."""

from __future__ import annotations

import sys

from devtools.chaos import real


def main() -> int:
    return real.main([argument for argument in sys.argv[1:] if argument != "--real"])


if __name__ == "__main__":
    sys.exit(main())
