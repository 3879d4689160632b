"""The retry policy: how long a request is retried, and the pauses between its attempts.

botocore's own retries are disabled. Their pauses have no lower bound (full jitter). They also share a token bucket: a
minute of SlowDown empties it, and then every request fails at once.

Here the pauses grow exponentially, and only their upper half is random. The limit is a time and not a number of
attempts. So a store that answers 503 for a minute is retried, no matter how fast it answers. A store that does not
answer cannot delay a request by its timeout times the number of attempts.
"""

import random
from dataclasses import dataclass

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The pauses between the attempts of one request. All times are in seconds.

    `max_elapsed_s`: the maximum time from the first failure to the start of an attempt. The last attempt starts then.
    `first_s`, `cap_s`: the pause after the first failure, and its maximum. The pause doubles with each failure; its
    upper half is random.
    `conflicts`: the maximum number of retries after a 409 of S3, which reports another write of the key in progress.
    """

    max_elapsed_s: float = 120.0
    first_s: float = 0.2
    cap_s: float = 15.0
    conflicts: int = 6

    def pause(
        self, failures: int, since_first_s: float, jitter: random.Random, retry_after_s: float = 0.0
    ) -> float | None:
        """The pause in seconds after the `failures`-th failure in a row (from 1); None if the retry time is over.

        `since_first_s`: the time since the first failure. `retry_after_s`: the pause that the server requests
        (Retry-After), honoured up to the cap.
        """
        remaining = self.max_elapsed_s - since_first_s
        if remaining <= 0:
            return None
        longest = min(self.cap_s, self.first_s * 2 ** min(failures - 1, 30))
        pause: float = longest * jitter.uniform(0.5, 1.0)
        return min(remaining, max(pause, min(retry_after_s, self.cap_s)))
