"""`linkwise view`: pages in files, and a server that ends when it is told to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

import linkwise as lw
from linkwise.cli import main
from tests.waiting import PATIENCE

pytest.importorskip("viser")


def test_a_robot_as_one_file(tmp_path, capsys):
    file = tmp_path / "robot.html"
    shown = ("--show", "shapes,frames", "--theme", "dark")
    assert main(["view", "puma560", "--html", str(file), *shown]) == 0
    assert "one file" in capsys.readouterr().out
    assert "puma560" in file.read_text(encoding="utf-8")


def test_a_recording_is_played_on_the_robot_it_is_of(tmp_path, capsys):
    recording, page = tmp_path / "run.npz", tmp_path / "run.html"
    lw.simulate(lw.models.puma560(), duration=0.02).save(recording)
    assert main(["view", str(recording), "--html", str(page)]) == 0
    assert page.stat().st_size > 100_000


def test_a_recording_of_a_robot_in_a_file(tmp_path, capsys):
    robot, recording, page = (tmp_path / name for name in ("arm.urdf", "run.npz", "run.html"))
    lw.save(lw.models.puma560(), robot)
    text = robot.read_text(encoding="utf-8").replace('name="puma560"', 'name="my_own"', 1)
    robot.write_text(text, encoding="utf-8")
    lw.simulate(lw.load(robot), duration=0.02).save(recording)
    assert main(["view", str(recording), "--html", str(page)]) == 2
    assert "--robot" in capsys.readouterr().err
    assert main(["view", str(recording), "--robot", str(robot), "--html", str(page)]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["puma56"], "did you mean 'puma560'"),
        (["missing.npz"], "missing.npz"),
        (["puma560", "--show", "ghosts"], "ghosts"),
        (["puma560", "--theme", "pink"], "pink"),
        (["puma560", "--node", "nose", "--show", "belted"], "nose"),
        (["puma560", "--port", "70000"], "--port"),
        (["puma560", "--html", "nowhere/x.html"], "no folder"),
    ],
)
def test_errors_are_clear(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    extra = [] if "--html" in arguments or "--port" in arguments else ["--html", "x.html"]
    assert main(["view", *arguments, *extra]) == 2
    err = capsys.readouterr().err
    assert said in err and err.startswith("linkwise: ")


def test_it_serves_until_interrupted():
    # Jobs that began in the background have no control-C; this one shall.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from linkwise.cli import main; "
        "raise SystemExit(main(['view', 'pendulum', '--no-browser']))"
    )
    command = [sys.executable, "-c", code]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=PATIENCE) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
        assert process.returncode == 0, process.stderr.read()
        assert "Traceback" not in process.stderr.read()
