"""One case of a fuzzer: what it may do, how long, and with how much memory.

Allowed are a result that is right and an error of our own tree. Anything else is a failure: another
exception, a warning of NumPy (a number that overflowed unseen), a second of computing too much.
"""

from __future__ import annotations

import importlib
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linkwise.errors import LinkwiseError

TARGETS = ("models", "meshes", "recordings", "kernels", "commands")
"""The modules, each with `use(number, folder)` and `made(number)`."""

SLOW = 3.0
"""No case may compute longer [s]."""

HANG = 20
"""After this long a case is cut off [s]."""

ROOM = 1 << 30
"""Memory that a case may take on top of what the process has [bytes]."""


@dataclass(frozen=True)
class Outcome:
    """What one case did: its verdict, how long it took and what was wrong, if anything."""

    target: str
    number: int
    verdict: str
    seconds: float
    trouble: str = ""


def run_case(target: str, number: int, folder: Path) -> Outcome:
    """Run one case in this process."""
    module, verdict, trouble = importlib.import_module(f"tests.fuzz.{target}"), "", ""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"still computing after {HANG} s")

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # what Linkwise itself says
            verdict = module.use(number, folder)
    except LinkwiseError as error:
        verdict = type(error).__name__
        if not str(error).strip():
            trouble = "an error without a message"
    except BaseException:
        verdict, trouble = "FAILED", traceback.format_exc(limit=-12)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - started
    if seconds > SLOW and not trouble:
        verdict, trouble = "FAILED", f"took {seconds:.1f} s"
    return Outcome(target, number, verdict, seconds, trouble)


def run_range(target: str, first: int, count: int) -> Iterator[Outcome]:
    """Cases first ... first + count - 1, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            yield run_case(target, number, Path(folder))


def limit_memory() -> None:
    """Hold this process to a little more memory than it has, for good."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
