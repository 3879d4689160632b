from concurrent.futures import ThreadPoolExecutor

from sink_job.s3 import RequestMetrics, Usage


def test_requests_are_counted_by_operation_with_their_retries_failures_and_bytes() -> None:
    meter = RequestMetrics()
    meter.request("UploadPart", sent=10)
    meter.failed("SlowDown")
    meter.request("UploadPart", sent=10, again=True)
    meter.request("GetObject")
    meter.received(7)
    assert meter.snapshot() == Usage(
        requests={"UploadPart": 2, "GetObject": 1},
        retries={"UploadPart": 1},
        failures={"SlowDown": 1},
        bytes_sent=20,
        bytes_received=7,
    )


def test_the_difference_of_two_snapshots_is_the_requests_between_them() -> None:
    meter = RequestMetrics()
    meter.request("PutObject", sent=3)
    meter.request("GetObject")
    before = meter.snapshot()
    meter.request("PutObject", sent=4)
    assert meter.snapshot() - before == Usage(requests={"PutObject": 1}, bytes_sent=4)


def test_the_requests_of_two_processes_can_be_added() -> None:
    one = Usage(requests={"PutObject": 1}, failures={"SlowDown": 1}, bytes_sent=4)
    other = Usage(requests={"PutObject": 2, "GetObject": 1}, bytes_received=5)
    assert one + other == Usage(
        requests={"PutObject": 3, "GetObject": 1}, failures={"SlowDown": 1}, bytes_sent=4, bytes_received=5
    )


def test_concurrent_requests_are_all_counted() -> None:
    meter = RequestMetrics()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: meter.request("UploadPart", sent=1), range(2000)))
    assert meter.snapshot() == Usage(requests={"UploadPart": 2000}, bytes_sent=2000)
