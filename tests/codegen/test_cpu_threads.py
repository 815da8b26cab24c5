"""Batches of several callers at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

from linkwise.codegen.cpu.device import spread


def test_callers_with_one_thread_each_do_not_wait_for_each_other():
    meeting = threading.Barrier(2, timeout=20.0)  # raises if only one of them comes

    def part(begin: int, end: int) -> None:
        assert (begin, end) == (0, 5)
        meeting.wait()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(spread, part, 5, 1, 1) for _ in range(2)]:
            done.result()
