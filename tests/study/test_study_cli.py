"""`linkwise study`: a TOML file runs, goes on, is reported, and its errors have lines."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from linkwise.cli import main
from linkwise.study import load
from linkwise.study.file import lines_of

pytest.importorskip("pyarrow")
pytest.importorskip("scipy")

EXAMPLE = Path(__file__).parents[2] / "examples" / "studies" / "payload.toml"

SMALL = """[study]
cases = 40
keep = ["q", "max:v"]

[mechanism]
robot = "chain(2)"

[run]
q = [0.1, 0.2]
duration = 0.02
step = 0.01

[vary."v[0]"]
distribution = "normal"
mean = 0.0
deviation = 1.0

[vary.damping]
low = 0.0
high = 0.5
"""


def written(folder: Path, text: str) -> str:
    file = folder / "small.toml"
    file.write_text(text)
    return str(file)


def test_run_status_resume_and_report(tmp_path, capsys):
    file = written(tmp_path, SMALL)
    assert main(["study", "resume", file]) == 2
    assert "no study to resume" in capsys.readouterr().err
    assert main(["study", "plan", file]) == 0
    assert "1 chunks of 16,384 cases; about" in capsys.readouterr().out
    assert not (tmp_path / "small").exists()
    assert main(["study", "run", file, "--workers", "0"]) == 2
    assert "workers is 0" in capsys.readouterr().err
    assert main(["study", "run", file, "--quiet"]) == 0
    assert "40 of 40 cases" in capsys.readouterr().out
    more = written(tmp_path, SMALL.replace("cases = 40", "cases = 60"))
    assert main(["study", "resume", more, "--quiet"]) == 0
    assert main(["study", "status", more]) == 0
    assert "60 of 60 cases" in capsys.readouterr().out
    assert load(tmp_path / "small").done == 60
    assert main(["study", "run", written(tmp_path, SMALL.replace("0.5", "0.7")), "--quiet"]) == 2
    assert "vary.damping" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    assert main(["study", "report", more, "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "40 of" not in page and "60" in page and "http" not in page.split("<body>")[0]


def test_status_names_damaged_chunks(tmp_path, capsys):
    file = written(tmp_path, SMALL)
    assert main(["study", "run", file, "--quiet"]) == 0
    part = tmp_path / "small" / "table" / "part-0000000.parquet"
    content = part.read_bytes()
    for damage, said in ((content[:99] + b"?" + content[100:], "not have its checksum"),
                         (None, "is missing")):  # fmt: skip
        part.write_bytes(damage) if damage else part.unlink()
        capsys.readouterr()
        assert main(["study", "status", file]) == 2
        assert said in capsys.readouterr().out
    assert "0 of 40 cases" in str(load(tmp_path / "small"))


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("cases = 40", "cases = 40.5", 2, "whole number"),
        ("cases = 40", "kases = 40", 2, "cases"),
        ('"chain(2)"', '"chian(2)"', 6, "chain"),
        ("q = [0.1, 0.2]", "q = [0.1]", 9, "shape"),
        ("deviation = 1.0", "", 13, "deviation"),
        ('"normal"', '"normalx"', 14, "scipy.stats"),
        ("[vary.damping]", "[vary.dampnig]", 18, "damping"),
        ("high = 0.5", "high = -0.5", 18, "less than"),
        ("step = 0.01", "step = 0.01\nsteps = 3", 12, "steps"),
        ("step = 0.01", "step = = 0.01", 11, "not TOML"),
        ("cases = 40", "cases = 40\nfolder = 3", 3, "must be a text"),
        ("cases = 40", 'cases = 40\nchunk = "a"', 3, "whole number"),
        ("cases = 40", 'cases = 40\nsampler = "sobl"', 3, "sobol"),
        ('["q", "max:v"]', '["q", "mx:v"]', 3, "no channel called 'mx:v'"),
        ("mean = 0.0", 'mean = "a"', 15, "single number"),
        ("mean = 0.0", "mean = 0.0\nmeen = 1", 16, "did you mean 'mean'"),
        ("low = 0.0", "", 18, "needs 'low'"),
        ("step = 0.01", "contacts = true", 11, "give [run.ground]"),
        ("step = 0.01", 'contacts = "feet"', 11, "give [run.ground]"),
        ("step = 0.01", 'setup = "x.py:f"', 11, "must name a function in a file"),
        ("step = 0.01", 'setup = "my.py:g"', 11, "my.py has no function 'g'"),
        ('"chain(2)"', '"my.py:work"', 6, "missing 1 required positional argument"),
        ("[vary.damping]", "[run.ground]\nfrictoin = 1\n[vary.damping]", 19, "'friction'"),
        ("[vary.damping]", "[run.ground]\nfriction = -1\n[vary.damping]", 19, "at least 0"),
        ("cases = 40", 'cases = 40\ntable = "rows.csv"', 3, "table gives all values"),
        ("duration = 0.02", "", 8, "needs 'duration'"),
        ("duration = 0.02", "duration = -1", 10, "positive"),
        ("step = 0.01", 'integrator = "eulr"', 11, "euler"),
        ("step = 0.01", "parameters = {dampin = 1.0}", 11, "damping"),
        ("step = 0.01", "record_every = 0", 11, "at least 1"),
        ('[mechanism]\nrobot = "chain(2)"', "", 1, "[mechanism] is missing"),
        ("high = 0.5", 'high = 0.5\n[[correlate]]\npair = ["v[0]"]\nvalue = 0.2', 21, "pair ="),
        ("high = 0.5", "high = 0.5\n[propose.dmping]\nlow = 0\nhigh = 1", 21, "damping"),
        ("[vary.damping]", '[run.law]\nnode = "tp"\nkp = 1\nkv = 1\n[vary.damping]', 19, "'tip'"),
        (
            "[vary.damping]",
            '[run.law]\nnode = "tip"\nkp = 1\nkv = 1\ngoal = [1, 0, 0]\nmove = [0, 1, 0]\n'
            "[vary.damping]",
            23,
            "both goal and move",
        ),
    ],
)
def test_errors_give_the_line(tmp_path, capsys, old, new, line, reason):
    (tmp_path / "my.py").write_text("def work(a):\n    return {'b': 2.0 * a}\n")
    file = written(tmp_path, SMALL.replace(old, new))
    assert main(["study", "run", file, "--quiet"]) == 2
    message = capsys.readouterr().err
    assert f"small.toml:{line}:" in message and reason in message, message


def test_functions_of_a_file(tmp_path, capsys):
    (tmp_path / "my.py").write_text("def work(a):\n    return {'b': 2.0 * a}\n")
    text = '[study]\ncases = 5\n[run]\nkind = "function"\nfunction = "my.py:work"\n'
    text += "[vary]\na = [1, 2]\n"
    assert main(["study", "run", written(tmp_path, text), "--quiet"]) == 0
    results = load(tmp_path / "small")
    assert (results["b"] == 2.0 * results["a"]).all()


def test_rows_of_a_file(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("v[0],damping\n0.5,0.1\n-0.25,0.3\n1e-1,0\n")
    text = SMALL[: SMALL.index("[vary")].replace("cases = 40", 'table = "rows.csv"')
    assert main(["study", "run", written(tmp_path, text), "--quiet"]) == 0
    results = load(tmp_path / "small")
    assert results["v[0]"].tolist() == [0.5, -0.25, 0.1]
    assert results["damping"].tolist() == [0.1, 0.3, 0.0]
    for rows, reason in (
        ("v[0],damping\n0.5,x\n", "row 2 of .* must have 2 finite numbers: "),
        ("v[0],damping\n0.5\n", "row 2"),
        ("v[0],damping\n0.5,nan\n", "row 2"),
        ("v[0],v[0]\n1,2\n", "different names"),
        ("v[0]\n", "rows of numbers"),
        ("", "rows of numbers"),
    ):
        (tmp_path / "rows.csv").write_text(rows)
        assert main(["study", "run", written(tmp_path, text), "--quiet"]) == 2
        message = capsys.readouterr().err
        assert "small.toml:2:" in message and re.search(reason, message), message


def test_the_example_of_a_fall_is_that_of_its_script():
    """Robot, push and ground from a file: the same heights as from Python."""
    from linkwise.cli.study import _robot
    from linkwise.study.file import load_file

    folder = EXAMPLE.parents[1]
    spec = importlib.util.spec_from_file_location("fall", folder / "study_standing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    script = module.fall_study(8)
    values = {"force": np.array([-120.0, 0.0, 20.0, 150.0])}
    file = load_file(EXAMPLE.parent / "standing.toml", _robot, trial=False).study
    assert np.array_equal(file.values(0, 8)["force"], script.values()["force"])
    heights = file.evaluate(values).columns["position:trunk[z]"]
    np.testing.assert_allclose(heights, script.evaluate(values).columns["height"], atol=1e-12)
    assert heights.min() < 0.2 < heights.max()  # some fall, some stand


def test_the_example_is_read():
    from linkwise.cli.study import _robot
    from linkwise.study.file import load_file

    plan = load_file(EXAMPLE, _robot)
    assert plan.study.cases == 1_000_000 and plan.study.names == ("payload:hand", "damping")
    assert not plan.study.evaluate(plan.study.values(0, 3)).failed.any()


def test_lines_of_keys():
    lines = lines_of('[a]\nb = 1\n[a."c.d"]\ne = [\n 1,\n]\n')
    assert lines[("a", "b")] == 2 and lines[("a", "c.d", "e")] == 4
