"""Which events are written again, and what it costs to know."""

from __future__ import annotations

from s3sink_operator.apply.applier import RecentEvents

TEN_MINUTES = 600_000


def event(number: int = 0) -> tuple[str, str, str]:
    return "uid", "Running", f"copying {number} topic-partitions"


def test_the_same_event_is_written_at_most_once_in_ten_minutes() -> None:
    events = RecentEvents()
    assert events.add(event(), 0)
    assert not events.add(event(), TEN_MINUTES - 1)
    assert events.add(event(), TEN_MINUTES)


def test_events_that_differ_are_all_written() -> None:
    events = RecentEvents()
    assert all(events.add(event(number), 0) for number in range(10))


def test_old_events_are_forgotten() -> None:
    events = RecentEvents()
    for number in range(100):
        events.add(event(number), number)
    events.add(event(-1), TEN_MINUTES + 50)
    assert len(events) == 50


def test_a_clock_that_was_ahead_does_not_repeat_events() -> None:
    events = RecentEvents()
    events.add(event(1), TEN_MINUTES * 3)
    assert events.add(event(2), 0)
    assert not events.add(event(2), 10)
    assert events.add(event(2), TEN_MINUTES)


def test_each_event_of_a_burst_examines_at_most_one_other_event() -> None:
    events, examined = RecentEvents(), Counting()
    events._at = examined
    for number in range(2_000):
        events.add(event(number), number)
    assert examined.iterated <= 2_000


class Counting(dict[int, int]):
    """Counts the entries that loops have read."""

    iterated = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        for each in super().__iter__():
            self.iterated += 1
            yield each

    def items(self):  # type: ignore[no-untyped-def]
        self.iterated += len(self)
        return super().items()
