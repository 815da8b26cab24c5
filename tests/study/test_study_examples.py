"""The examples of studies run: study_payload, study_four_bar, study_standing, study_data_set."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.prove
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("study_payload", {"cases": 500}),
        ("study_four_bar", {"groups": 256}),
        ("study_standing", {"cases": 2000}),
        ("study_data_set", {"cases": 1000}),
    ],
)
def test_example(name, options):
    for package in ("pyarrow", "SALib", "scipy"):
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(**options)
