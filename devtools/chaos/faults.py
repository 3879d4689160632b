"""The faults. Each takes a world under load and a random generator, does one harm, and checks how the drivers end.

Exit codes: 0 after SIGTERM, 3 only where another driver has claimed the ledger, 75, and what a SIGKILL leaves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from devtools.chaos import processes, servers, surroundings
from devtools.chaos.world import World

Fault = Callable[[World, random.Random], None]

FAULTS: Mapping[str, Fault] = {
    "kill": processes.kill,
    "kill-at-request": processes.kill_at_request,
    "kill-driver-alone": processes.kill_driver_alone,
    "kill-jvm": processes.kill_jvm,
    "kill-worker": processes.kill_worker,
    "late-request": processes.late_request,
    "pause": processes.pause,
    "terminate": processes.terminate,
    "terminate-in-request": processes.terminate_in_request,
    "terminate-twice": processes.terminate_twice,
    "takeover": processes.takeover,
    "takeover-of-paused": processes.takeover_of_paused,
    "two-at-once": processes.two_at_once,
    "broker-restart": servers.broker_restart,
    "broker-kill": servers.broker_kill,
    "broker-pause": servers.broker_pause,
    "s3-dropped": servers.s3_dropped,
    "s3-status": servers.s3_status,
    "s3-delay": servers.s3_delay,
    "s3-hold": servers.s3_hold,
    "s3-refused": servers.s3_refused,
    "s3-restart": servers.s3_restart,
    "s3-outage": servers.s3_outage,
    "disk-full": surroundings.disk_full,
    "file-limit": surroundings.file_limit,
    "out-of-memory": surroundings.out_of_memory,
    "lost-uploads": surroundings.lost_uploads,
    "lost-staging": surroundings.lost_staging,
    "retention": surroundings.retention,
    "partitions": surroundings.partitions,
    "growth": surroundings.growth,
    "edit": surroundings.edit,
    "reader": surroundings.reader,
    "group-reset": surroundings.group_reset,
}
"""By the names of `worlds.FAULTS`."""
