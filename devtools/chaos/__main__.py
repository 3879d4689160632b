"""`python -m devtools.chaos --real`: chaos with processes, a real broker and a real S3 server."""

from __future__ import annotations

import argparse
import sys

from devtools.chaos import real


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.chaos", description=__doc__)
    parser.add_argument("--real", action="store_true", required=True, help="real processes, Kafka and S3")
    real.add_arguments(parser)
    return real.main(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
