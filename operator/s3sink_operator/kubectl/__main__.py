"""`python -m s3sink_operator.kubectl`: the program `kubectl-s3sink`."""

import sys

from s3sink_operator.kubectl.command import main

sys.exit(main())
