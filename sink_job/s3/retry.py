"""How long a request is tried again, and how long it pauses between tries.

botocore's own retries are switched off: their pauses have no lower bound (full jitter) and share a token bucket that a
minute of SlowDown empties, after which every request fails at once. Here the pauses grow, are jittered in their upper
half only, and the end is set by time, not by a count: a store that answers 503 for a minute is waited for whether its
answers are quick or slow, and a store that hangs does not hold a request for tries times its time-out.
"""

import random
from dataclasses import dataclass

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Pauses between the tries of one request; all times in seconds.

    `patience_s`: a try may begin up to so long after the first failure; the last one begins then.
    `first_s`, `cap_s`: the pause after the first failure, doubling up to the cap; each is drawn from its upper half.
    `conflicts`: how often a 409 is tried again (it says that another write of the key is under way) before it is
    believed.
    """

    patience_s: float = 120.0
    first_s: float = 0.2
    cap_s: float = 15.0
    conflicts: int = 6

    def pause(self, failures: int, since_first_s: float, jitter: random.Random, floor_s: float = 0.0) -> float | None:
        """The pause after the `failures`-th failure in a row (from 1), `since_first_s` after the first; None: give up.

        `floor_s` is what the server asked for (Retry-After); it is honoured up to the cap.
        """
        left = self.patience_s - since_first_s
        if left <= 0:
            return None
        longest = min(self.cap_s, self.first_s * 2 ** min(failures - 1, 30))
        drawn: float = longest * jitter.uniform(0.5, 1.0)
        return min(left, max(drawn, min(floor_s, self.cap_s)))
