"""One quick tour with its report, for all tests of a worker."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.tour.guide import guide
from linkwise.tour.visit import Visit


@dataclass
class Toured:
    """What was seen, what was printed, and the page."""

    visit: Visit
    printed: str
    report: Path

    @property
    def page(self) -> str:
        return self.report.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def toured(tmp_path_factory) -> Toured:
    pytest.importorskip("matplotlib")
    pytest.importorskip("viser")
    report, printed = tmp_path_factory.mktemp("tour") / "tour.html", io.StringIO()
    with contextlib.redirect_stdout(printed):
        visit = guide(lw.models.puma560(), report=report, quick=True)
    return Toured(visit, printed.getvalue(), report)
