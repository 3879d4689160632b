"""The error with which a run ends. After the end of Spark's JVM, the first error that a run meets is arbitrary."""

from __future__ import annotations

import logging
import os
from typing import Final

from sink_job.api.errors import SinkError, TooManyExecutorFailures, TransientError
from sink_job.driver.started_spark import StartedSpark
from sink_job.spark.resource_errors import resource_error

MAX_LOGGED_ERROR = 4000
"""Characters of an error of the JVM that are logged: its message, its first causes, and no complete stack trace."""

_IN_POD: Final = "KUBERNETES_SERVICE_HOST"
"""Environment variable of each container in a cluster."""
_MACHINE_ADVICE: Final = "If this happens again, run fewer concurrent tasks (--cores), or free memory on this machine"
_POD_ADVICE: Final = (
    "The operator gives the next attempt more memory after an out-of-memory kill. If this happens again, increase "
    "spec.executor.memory.max, or decrease spec.executor.cores"
)

_log = logging.getLogger(__name__)


def classified(error: Exception, *, stopping: bool, has_executors: bool, spark: StartedSpark) -> Exception | None:
    """The error to raise for `error`; None for an error that is caused by a stop signal."""
    error = resource_error(error) or error
    named = isinstance(error, SinkError) and type(error) is not SinkError
    if stopping and (not named or isinstance(error, TransientError)):
        _log.info("stopped: %s", error)
        return None
    if named and not isinstance(error, TransientError):
        return error
    if not named and has_executors and spark.is_starting:
        _log.error("Spark did not start: %s", str(error)[:MAX_LOGGED_ERROR])
        return TransientError(
            "Spark could not start on Kubernetes: see the API server's error in the driver log. The driver's service "
            "account needs the verbs get, list, watch, create and delete on pods, which the chart's ClusterRole for "
            "drivers grants"
        )
    code = spark.jvm_exit_code() if not named or has_executors else None
    if code == TooManyExecutorFailures.exit_code:
        return TooManyExecutorFailures(
            "Spark stopped because too many executors failed. Check the status of their pods, spec.executor.memory and "
            "spec.executor.podTemplate. The next run resumes from the ledger"
        )
    if not named and code is not None:
        advice = _POD_ADVICE if os.environ.get(_IN_POD) else _MACHINE_ADVICE
        return TransientError(f"Spark's JVM has ended, possibly OOM-killed. No data is lost. {advice}")
    return error
