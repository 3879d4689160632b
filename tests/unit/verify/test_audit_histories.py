"""Audits of random histories, consistent and damaged."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sink_job.verify.results import Finding, FindingType
from tests.unit.verify.audit_builder import AuditBuilder, closed, opened


@st.composite
def histories(draw: st.DrawFn) -> AuditBuilder:
    """A random history: each offset is in one of the paths or a gap; rotation ranges end at random offsets; at the end
    some objects are open, and some closed objects are not acknowledged."""
    start = draw(st.sampled_from([0, 3, 10**12]))
    sink = AuditBuilder(next=start)
    paths = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(1, 4))):
        by_path = offsets_by_path(draw, sink.next, paths)
        if by_path:
            objects = [closed(offsets, path) for path, offsets in by_path.items()]
            sink.rotation(*objects, pending=draw(st.booleans()) or bool(sink.pending))
    by_path = offsets_by_path(draw, sink.next, paths)
    still_open = {path: offsets for path, offsets in by_path.items() if draw(st.booleans())}
    if still_open:
        sink.pending += [closed(offsets, path) for path, offsets in by_path.items() if path not in still_open]
        every = [offset for offsets in by_path.values() for offset in offsets]
        sink.add_open(*(opened(offsets, path) for path, offsets in still_open.items()), accepted=every)
    return sink


def offsets_by_path(draw: st.DrawFn, start: int, paths: int) -> dict[str, list[int]]:
    """Random offsets from `start` on, by path."""
    by_path: dict[str, list[int]] = {}
    choice = draw(st.lists(st.integers(-1, paths - 1), min_size=1, max_size=12))
    for offset, path in enumerate(choice, start):
        if path >= 0:
            by_path.setdefault("abc"[path], []).append(offset)
    return by_path


def describe(finding: Finding) -> str:
    return f"{finding.type} {finding.offset} {finding.message}"


@settings(max_examples=50)
@given(histories())
def test_a_consistent_history_has_no_findings(sink: AuditBuilder) -> None:
    result = sink.result()
    assert [describe(finding) for finding in result.findings] == []
    assert result.next - result.start == result.records + result.pending_records + result.gaps


@settings(max_examples=50)
@given(histories(), st.data())
def test_a_missing_object_entry_is_reported_at_or_before_its_first_offset(
    sink: AuditBuilder, data: st.DataObject
) -> None:
    entries = data.draw(st.sampled_from([sink.published, sink.pending]))
    assume(entries)
    entry = entries.pop(data.draw(st.integers(0, len(entries) - 1)))
    findings = sink.findings()
    assert findings
    assert findings[0][1] <= entry.first


@settings(max_examples=50)
@given(histories(), st.data())
def test_more_missing_than_lost_records_are_reported(sink: AuditBuilder, data: st.DataObject) -> None:
    several = [at for at, o in enumerate(sink.published) if o.offsets.count > 1]
    assume(several)
    whole = sink.published.pop(data.draw(st.sampled_from(several)))
    sink.lose(whole, [whole.first])
    findings = sink.findings()
    assert findings
    assert all(kind == FindingType.OFFSETS_MISSING for kind, _ in findings)


@settings(max_examples=50)
@given(histories(), st.data())
def test_a_missing_rotation_entry_is_located_exactly(sink: AuditBuilder, data: st.DataObject) -> None:
    assume(sink.rotations)
    entry = sink.rotations.pop(data.draw(st.integers(0, len(sink.rotations) - 1)))
    assert sink.findings()[0] == (FindingType.OFFSETS_MISSING, entry.start)


@settings(max_examples=50)
@given(histories(), st.data())
def test_a_duplicate_entry_is_reported_with_its_first_offset(sink: AuditBuilder, data: st.DataObject) -> None:
    assume(sink.published)
    entry = data.draw(st.sampled_from(sink.published))
    sink.published.append(entry)
    assert (FindingType.DUPLICATE_OFFSETS, entry.first) in sink.findings()


@settings(max_examples=50)
@given(histories(), st.data())
def test_a_missing_object_is_located_exactly(sink: AuditBuilder, data: st.DataObject) -> None:
    assume(sink.published)
    entry = data.draw(st.sampled_from(sink.published))
    sink.bucket = replace(sink.bucket, missing=frozenset({entry.key}))
    assert sink.findings() == [(FindingType.OBJECT_MISSING, entry.first)]
