"""The faults. Each takes a scenario under load and a random generator, injects one fault, and checks how drivers end.

Expected exit codes: 0 after SIGTERM, 3 only if another driver has claimed the ledger, 7 only if the registry denies
access or has another schema under an id, 75, and those of a SIGKILL.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from devtools.chaos import external_faults, process_faults, registry_faults, server_faults
from devtools.chaos.scenario import Scenario

Fault = Callable[[Scenario, random.Random], None]

FAULTS: Mapping[str, Fault] = {
    "kill": process_faults.kill,
    "kill-at-request": process_faults.kill_at_request,
    "kill-driver-alone": process_faults.kill_driver_alone,
    "kill-jvm": process_faults.kill_jvm,
    "kill-worker": process_faults.kill_worker,
    "late-request": process_faults.late_request,
    "pause": process_faults.pause,
    "terminate": process_faults.terminate,
    "terminate-in-request": process_faults.terminate_in_request,
    "terminate-twice": process_faults.terminate_twice,
    "takeover": process_faults.takeover,
    "takeover-of-paused": process_faults.takeover_of_paused,
    "two-at-once": process_faults.two_at_once,
    "broker-restart": server_faults.broker_restart,
    "broker-kill": server_faults.broker_kill,
    "broker-pause": server_faults.broker_pause,
    "s3-dropped": server_faults.s3_dropped,
    "s3-status": server_faults.s3_status,
    "s3-delay": server_faults.s3_delay,
    "s3-hold": server_faults.s3_hold,
    "s3-refused": server_faults.s3_refused,
    "s3-restart": server_faults.s3_restart,
    "s3-outage": server_faults.s3_outage,
    "disk-full": external_faults.disk_full,
    "file-limit": external_faults.file_limit,
    "out-of-memory": external_faults.out_of_memory,
    "lost-uploads": external_faults.lost_uploads,
    "lost-staging": external_faults.lost_staging,
    "retention": external_faults.retention,
    "partitions": external_faults.partitions,
    "growth": external_faults.growth,
    "edit": external_faults.edit,
    "reader": external_faults.reader,
    "group-reset": external_faults.group_reset,
    "registry-kill": registry_faults.registry_kill,
    "registry-pause": registry_faults.registry_pause,
    "registry-slow": registry_faults.registry_slow,
    "registry-status": registry_faults.registry_status,
    "registry-denied": registry_faults.registry_denied,
    "registry-late": registry_faults.registry_late,
    "registry-changed": registry_faults.registry_changed,
    "registry-outage": registry_faults.registry_outage,
}
"""The faults by the names of `scenario_plan.FAULTS`."""
