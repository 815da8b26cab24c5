"""One quick tour with its report, for all tests of all workers."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.tour.guide import guide
from linkwise.tour.visit import Visit
from tests.waiting import until

TRIES = 12_000
"""How long a worker waits for the tour of another before it goes itself [s]."""


@dataclass
class Toured:
    """What was seen, what was printed, and the page."""

    visit: Visit
    printed: str
    report: Path

    @property
    def page(self) -> str:
        return self.report.read_text(encoding="utf-8")


def go(folder: Path) -> Toured:
    report, printed = folder / "tour.html", io.StringIO()
    with contextlib.redirect_stdout(printed):
        visit = guide(lw.models.puma560(), report=report, quick=True)
    return Toured(visit, printed.getvalue(), report)


@pytest.fixture(scope="session")
def toured(tmp_path_factory) -> Toured:
    """The first worker that asks goes; the others wait for what it brings home."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("viser")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return go(tmp_path_factory.mktemp("tour"))
    shared = tmp_path_factory.getbasetemp().parent / "tour"
    home, ended = shared / "toured.pickle", shared / "ended"
    try:
        shared.mkdir()
    except FileExistsError:
        until(ended.exists, tries=TRIES)
        return (
            pickle.loads(home.read_bytes()) if home.exists() else go(tmp_path_factory.mktemp("t"))
        )
    try:
        result = go(shared)
        home.write_bytes(pickle.dumps(result))
        return result
    finally:
        ended.touch()
