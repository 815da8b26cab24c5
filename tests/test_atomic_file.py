"""Every file is written completely or not at all, and by one module."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import re
import resource
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.atomic_file import check_writable, write_file, write_files
from linkwise.cli import main
from linkwise.errors import LinkwiseError, WriteError
from linkwise.tour.guide import guide

SOURCE = Path(lw.__file__).parent

WRITING = re.compile(
    r"""write_text|write_bytes|\.touch\((\)|exist_ok)|os\.open\(|os\.replace|os\.rename|\.rename\(|os\.link\(
    |unlink\(|os\.remove|rmtree|rmdir|mkstemp|NamedTemporary|shutil|np\.save|savetxt|\.tofile\(
    |mkdir\(|symlink_to|truncate\(|to_csv|write_html
    |\bopen\((?!\))[^()]*,\s*(mode=)?["'][^"']*[wax+]|\.open\(\s*(mode=)?["'][^"']*[wax+]
    |ZipFile\([^)]*["'][wax]["']|File\([^)]*["'][wax]["']""",
    re.VERBOSE,
)
ALLOWED = {
    "atomic_file.py": "the writer itself",
    "codegen/cpu/cache.py": "removes old kernels in a folder of its own, by names of its own",
    "codegen/c/source.py": "makes the folder that --output names",
    "cli/__init__.py": "sends what a closed pipe did not take to the null device",
    "cli/optimize.py": "an archive in memory",
    "convert/casadi.py": "compiles libraries in a temporary folder, which it removes",
    "flexible/modal_file.py": "an archive in memory",
    "simulation/recording_file.py": "an archive in memory",
    "study/design.py": "makes the folder of a design",
    "study/folder.py": "makes the folder of a study, appends to its list, removes incomplete files",
    "study/journal.py": "makes the folder of a search, removes incomplete files",
    "viewer/video.py": "a film in memory",
}


def test_nothing_else_writes_or_deletes_files():
    result = dict[str, list[str]]()
    for file in sorted(SOURCE.rglob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        hits = [line.strip() for line in lines if WRITING.search(line)]
        if hits:
            result[file.relative_to(SOURCE).as_posix()] = hits
    assert set(result) <= set(ALLOWED), {k: v for k, v in result.items() if k not in ALLOWED}
    assert "atomic_file.py" in result  # the pattern finds what it looks for
    assert all("mkdir" in line for line in result["codegen/c/source.py"])
    assert all("devnull" in line for line in result["cli/__init__.py"])


def test_pictures_are_drawn_in_memory():
    for file in SOURCE.rglob("*.py"):
        for target in re.findall(r"savefig\((\w+)", file.read_text(encoding="utf-8")):
            assert target in ("file", "picture"), f"{file}: savefig({target}"  # streams both


# ----------------------------------------------------------------------------------- a full disk


@contextlib.contextmanager
def full_disk(room=64):
    """No file can grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut short
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


@pytest.fixture(scope="module")
def rec():
    return lw.simulate(lw.models.pendulum(2), duration=0.05)


def command(*arguments):
    """A command that must fail with one line."""

    def run(rec, path):
        del rec
        status = main([*arguments, str(path)])
        if status:
            raise WriteError(path, OSError(f"status {status}"))

    return run


def save(suffix):
    return suffix, lambda rec, path: lw.save(rec.mech, path)


def record(suffix):
    return suffix, lambda rec, path: rec.save(path)


WRITERS = {
    "save_urdf": save(".urdf"),
    "save_mjcf": save(".xml"),
    **{f"record{suffix}": record(suffix) for suffix in (".csv", ".npz")},
    "export_html": (".html", lambda rec, path: lw.viewer.export_html(rec, path)),
    "export_html_still": (".html", lambda rec, path: lw.viewer.export_html(rec.mech, path)),
    "tour": (".html", lambda rec, path: guide(rec.mech, report=path, stations=())),
    "view_html": (".html", command("view", "pendulum", "--html")),
}
NEEDS = {".html": "viser"}


@pytest.mark.few(5)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file_as_it_was(writer, rec, tmp_path, capsys):
    suffix, write = WRITERS[writer]
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    path = tmp_path / f"old{suffix}"
    write(rec, path)  # libraries that are imported for it keep files of their own
    path.write_bytes(b"kept\x00" * 40)
    path.chmod(0o640)
    with full_disk(), pytest.raises(LinkwiseError, match=re.escape(str(path))):
        write(rec, path)
    assert path.read_bytes() == b"kept\x00" * 40
    new = tmp_path / f"new{suffix}"
    with full_disk(), pytest.raises(LinkwiseError):
        write(rec, new)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]  # nothing half is left
    write(rec, path)  # and with room it is written
    assert len(path.read_bytes()) > 200 and stat.S_IMODE(path.stat().st_mode) == 0o640
    capsys.readouterr()


def test_a_full_disk_leaves_both_files_of_c(tmp_path, capsys):
    request = [
        "export-c",
        "pendulum",
        "--quantity",
        "mass_matrix",
        "--name",
        "m",
        "-o",
        str(tmp_path),
    ]
    assert main(request) == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(before) == {"m.h", "m.c"}
    request[1] = "puma560"
    with full_disk(len(before["m.h"]) + 2000):  # there is room for one, and not for both
        assert main(request) == 2
    assert "cannot write" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


# ------------------------------------------------------------------------------------- the writer


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def parts():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, parts())
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_all_files_are_complete_before_one_is_replaced(tmp_path):
    first, second = tmp_path / "first", tmp_path / "missing" / "second"
    first.write_text("old")
    with pytest.raises(WriteError, match=r"second.*No such file or directory"):
        write_files({first: "new", second: "new"})
    assert first.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_permissions_and_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    write_file(tmp_path / "new", "y")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604
    assert (tmp_path / "new").read_text() == "y"


def test_a_file_without_permission_to_write_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    path.write_text("old")
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the administrator may write anything
    with pytest.raises(WriteError, match="Permission denied") as result:
        write_file(path, "new")
    assert result.value.errno == errno.EACCES and isinstance(result.value, OSError)
    with pytest.raises(WriteError):
        check_writable(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_links_stay_and_their_target_is_written(tmp_path):
    folder = tmp_path / "far"
    folder.mkdir()
    target, link = folder / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in ("new", "again"):  # also where nothing is behind the link yet
        write_file(link, text)
        assert link.is_symlink() and target.read_text() == text
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(WriteError, match="circle"):
        write_file(circle, "x")
    assert circle.is_symlink()
    assert {x.name for x in tmp_path.iterdir()} == {"far", "link", "circle"}
    assert [x.name for x in folder.iterdir()] == ["target"]


@pytest.mark.parametrize("name", ["x" * 300, "nul\0l", "", "."])
def test_names_that_no_file_has(tmp_path, name):
    with pytest.raises(WriteError, match="cannot write"):
        write_file(os.path.join(tmp_path, name), "x")
    with pytest.raises(WriteError):
        check_writable(os.path.join(tmp_path, name))
    assert not list(tmp_path.iterdir())


def test_the_trial_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    check_writable(path)
    assert not list(tmp_path.iterdir())
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such device here")
def test_devices_and_pipes_are_written_directly(tmp_path, capfd):
    write_file("/dev/stdout", "to the screen\n")
    write_file("/dev/null", "nowhere")
    assert capfd.readouterr().out == "to the screen\n"
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_error_survives_pickling(tmp_path):
    error = WriteError(tmp_path / "a", OSError(errno.ENOSPC, "No space left on device"))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == f"cannot write '{tmp_path}/a': No space left on device."
    assert again.errno == errno.ENOSPC


def test_large_content_in_parts(tmp_path):
    data = np.random.default_rng(0).bytes(3 << 20)
    write_file(tmp_path / "big", (data[i : i + 100_000] for i in range(0, len(data), 100_000)))
    assert (tmp_path / "big").read_bytes() == data
