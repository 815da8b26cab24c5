"""Kernels on disk: found again, rebuilt when damaged, never taken from somebody else."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import P, bias, mass, tau, v
from linkwise.algebra.derivation import Derivation
from linkwise.codegen.cpu import cache, machine
from linkwise.codegen.cpu.digest import UnknownContentError, content, digest, package, sources
from tests.waiting import PATIENCE

FORWARD = mass.inv @ (tau - bias)
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners of files here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "base"))
    return tmp_path / "base" / cache.FOLDER


def files(folder):
    """The kernels in a folder; nothing else may be there but the mark."""
    result = [file for file in folder.iterdir() if file.name != cache.TAG]
    assert all(re.fullmatch("[0-9a-f]{64}", file.name) for file in result)
    return result


def kernels(folder):
    """Those that hold no derivation."""
    start = len(cache.HEADER) + 32
    return [file for file in files(folder) if file.read_bytes()[start : start + 1] == b"{"]


@pytest.fixture
def compiled(monkeypatch):
    """Counts how often LLVM is really run."""
    calls = list[int]()
    plain = machine.object_code

    def counted(unit):
        calls.append(1)
        return plain(unit)

    monkeypatch.setattr(machine, "object_code", counted)
    return calls


def value(kernel):
    n = kernel.mech.nv
    return kernel(np.linspace(0.1, 0.9, n), np.linspace(-1, 1, n), np.ones(n))


def test_a_kernel_is_compiled_once_and_found_again(folder, compiled):
    mech = lw.models.pendulum(2)
    first = lw.compile(FORWARD, mech)
    again = lw.compile(FORWARD, lw.models.pendulum(2))  # another object, the same content
    assert len(compiled) == 1
    np.testing.assert_array_equal(value(first), value(again))
    assert again.ops == first.ops
    assert again.arguments == first.arguments
    assert again.source == first.source  # made again when asked for
    assert "for k = tips" in again.explain()
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert all((file.stat().st_mode & 0o777) == 0o600 for file in folder.iterdir())


@pytest.fixture
def searches(monkeypatch):
    """Counts how often a cheaper form is really looked for."""
    from linkwise.algebra import search
    from linkwise.codegen.cheapest import cheapest

    calls, plain = list[int](), search.cheapest

    def counted(*arguments):
        calls.append(1)
        return plain(*arguments)

    monkeypatch.setattr(search, "cheapest", counted)
    cheapest.cache_clear()
    yield calls
    cheapest.cache_clear()


@pytest.mark.parametrize(
    "damage",
    [
        None,
        lambda old: old[:-40],
        lambda old: pickle.dumps("no derivation"),
        lambda old: pickle.dumps(Derivation(FORWARD)),
        lambda old: b"{}",
    ],
    ids=["whole", "cut", "something else", "of another expression", "no pickle"],
)
def test_a_derivation_is_found_once(folder, searches, damage):
    from linkwise.codegen.cheapest import cheapest

    ours = FORWARD + 0.5 * v  # of no function of the library
    first = lw.derive(ours)
    made = len(searches)
    assert made and first.steps
    cheapest.cache_clear()  # as in another process
    (file,) = files(folder)
    if damage is not None:
        assert cache.write(file.name, damage(cache.read(file.name)))
    again = lw.derive(ours)
    assert again == first and again.replay()
    assert (len(searches) == made) is (damage is None)


@pytest.mark.parametrize("rolled", [False, True])
def test_code_for_batches_is_made_for_the_first_one(folder, compiled, rolled):
    mech = lw.models.chain(5)
    kernel = lw.compile(FORWARD, mech, rolled=rolled)
    state = [np.linspace(0.1, 0.9, 5), np.linspace(-1, 1, 5), np.ones(5)]
    one = kernel(*state)
    few = kernel(*(np.tile(x, (kernel.signature.lanes - 1, 1)) for x in state))
    assert len(compiled) == 1
    batch = [np.tile(x, (2 * kernel.signature.lanes + 3, 1)) for x in state]
    many = kernel(*batch)
    assert len(compiled) == 2
    for row in (*few, *many):
        np.testing.assert_allclose(row, one, rtol=1e-13)
    again = lw.compile(FORWARD, lw.models.chain(5), rolled=rolled)
    np.testing.assert_array_equal(again(*batch), many)
    assert len(compiled) == 2  # both came from disk


def test_whatever_makes_a_difference_makes_another_kernel(folder, compiled):
    mech = lw.models.pendulum(2)
    arm = lw.models.seven_dof_arm()
    node, other = arm.bodies[-1].name, arm.bodies[-2].name
    from linkwise.algebra import J

    request = [
        lambda: lw.compile(FORWARD, mech),
        lambda: lw.compile(mass, mech),
        lambda: lw.compile(FORWARD, mech, dtype=np.float32),
        lambda: lw.compile(FORWARD, mech, parameters=["gravity"]),
        lambda: lw.compile(FORWARD, mech, rolled=True),
        lambda: lw.compile(FORWARD, mech, derive=False),
        lambda: lw.compile(FORWARD, mech, rows=[0]),
        lambda: lw.compile(FORWARD, mech, rows=[1]),
        lambda: lw.compile(mass, mech, rows=[0]),
        lambda: lw.compile(mass, mech, columns=[0]),
        lambda: lw.compile(P, mech),
        lambda: lw.compile(P, mech, blocks=True),
        lambda: lw.compile(FORWARD, lw.models.pendulum(2, mass=1.25)),
        lambda: lw.compile(FORWARD, lw.models.pendulum(3)),
        lambda: lw.compile(J, arm, nodes=[node]),
        lambda: lw.compile(J, arm, nodes=[other]),
        lambda: lw.compile(J, arm, nodes=[node, other]),
    ]
    for ask in request:
        ask()
    assert len(compiled) == len(request) == len(kernels(folder))
    for ask in request:
        ask()
    assert len(compiled) == len(request)


def named(first, second):
    """Two bodies whose hinges have these names."""
    box = lw.SpatialInertia.solid_box(1.5, (0.1, 0.2, 0.3))
    builder = lw.Builder("two").body(
        "upper", hinge=lw.hinges.Pin((0, 0, 1)), hinge_name=first, inertia=box
    )
    at = lw.Pose.translation((0.3, 0.0, 0.1))
    hinge = lw.hinges.Pin((1, 0, 0))
    return builder.body("lower", "upper", hinge, hinge_name=second, inboard=at, inertia=box).build()


def test_names_of_hinges_make_a_difference(folder):
    """Selections and rows are by name: with the names exchanged, other entries are meant."""
    q, v = np.array([0.3, 0.4]), np.array([0.5, -0.6])
    for mech in (named("a", "b"), named("b", "a")):
        k = int(mech.v_slice("a").start)
        block = lw.dynamics.mass_matrix_inverse_block(mech, q, "a")
        np.testing.assert_allclose(block, lw.mass_matrix_inverse(mech, q)[k : k + 1, k : k + 1])
        motion = lw.hybrid_dynamics(mech, q, v, tau={"b": 0.5}, vdot={"a": 1.0})
        needed = lw.inverse_dynamics(mech, q, v, motion.vdot)
        np.testing.assert_allclose(needed, motion.tau, rtol=1e-12, atol=1e-12)


def acted_on(**changed):
    """A pendulum with a loop in which everything has a number that can be changed."""
    x = {"damping": 0.3, "stiffness": 2.0, "rest": 0.1, "in_loop": 0.4, "gain": 3.0, "share": 0.5}
    x = {**x, **changed}
    box = lw.SpatialInertia.solid_box(1.5, (0.1, 0.2, 0.3))
    drive = lw.Drive(damping=x["damping"], stiffness=x["stiffness"], rest=x["rest"])
    builder = lw.Builder("acted on").body("bar", "world", lw.hinges.Pin(), inertia=box, drive=drive)
    builder.node("rim", "bar", (0.1, 0.0, 0.0))
    drive = lw.Drive(stiffness=x["in_loop"])
    builder.loop("pin", "world", "rim", lw.hinges.Planar(), drive=drive)
    builder.actuator(lw.Actuator.motor("motor", "bar", gear=x["gain"]))
    return builder.build(gravity_compensation=[("bar", x["share"])])


def test_what_acts_on_a_mechanism_makes_a_difference(folder):
    """Of mechanisms alike but for one number, each has its own kernels."""
    changes = [{}, *({name: 0.7} for name in ("damping", "stiffness", "rest", "in_loop"))]
    changes += [{"gain": 0.7}, {"share": 0.7}]
    assert len({digest(acted_on(**x)) for x in changes}) == len(changes)
    assert digest(acted_on()) == digest(acted_on())

    q, v = np.array([0.3]), np.array([0.5])
    for d, k, rest in [(0.3, 2.0, 0.1), (0.7, 2.0, 0.1), (0.3, 0.7, 0.1), (0.3, 2.0, 0.7)]:
        open_ = acted_on(damping=d, stiffness=k, rest=rest, share=0.0).without("pin")
        force = lw.passive_force(open_, q, v)
        np.testing.assert_allclose(force, -d * v - k * (q - rest), rtol=1e-12)
        pushed = lw.forward_dynamics(open_, q, v, np.zeros(1), passive=True)
        np.testing.assert_allclose(pushed, lw.forward_dynamics(open_, q, v, force), rtol=1e-12)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:40],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: data[:-9] + bytes([data[-9] ^ 128]) + data[-8:],
        lambda data: b"x" * len(data),
        lambda data: data + b"more",
    ],
)
def test_damaged_files_are_rebuilt(folder, compiled, damage):
    mech = lw.models.pendulum(2)
    expected = value(lw.compile(FORWARD, mech))
    (file,) = files(folder)
    full = file.read_bytes()
    file.write_bytes(damage(full))
    np.testing.assert_array_equal(value(lw.compile(FORWARD, mech)), expected)
    assert len(compiled) == 2
    assert len(file.read_bytes()) == len(full)
    lw.compile(FORWARD, mech)
    assert len(compiled) == 2


def test_files_that_others_could_have_written_are_not_loaded(folder, compiled, monkeypatch):
    mech = lw.models.pendulum(2)
    lw.compile(FORWARD, mech)
    (file,) = files(folder)
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        before = len(compiled)
        lw.compile(FORWARD, mech)
        assert len(compiled) == before + 1
    file.unlink()
    elsewhere = folder.parent / "planted"
    elsewhere.write_bytes(b"")
    lw.compile(FORWARD, mech)
    (file,) = files(folder)
    elsewhere.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(elsewhere)  # a link may point to anybody's file
    before = len(compiled)
    lw.compile(FORWARD, mech)
    assert len(compiled) == before + 1
    for mode in (0o720, 0o702, 0o777):  # a folder in which others can put files
        folder.chmod(mode)
        before = len(compiled)
        lw.compile(FORWARD, mech)
        lw.compile(FORWARD, mech)
        assert len(compiled) == before + 2
    folder.chmod(0o700)
    before = len(compiled)
    lw.compile(FORWARD, mech)
    assert len(compiled) == before
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # the files are another user's
    lw.compile(FORWARD, mech)
    assert len(compiled) == before + 1


def test_without_a_place_to_write_kernels_work_in_memory(tmp_path, monkeypatch, compiled):
    mech = lw.models.pendulum(2)
    expected = value(lw.compile(FORWARD, mech, cache=False))
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    for place in (str(in_the_way), str(in_the_way / "below"), "/proc/nowhere/linkwise", "off"):
        monkeypatch.setenv("LINKWISE_CACHE", place)
        before = len(compiled)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(value(lw.compile(FORWARD, mech)), expected)
        assert len(compiled) == before + 1
    assert in_the_way.read_text() == "no folder"
    monkeypatch.delenv("LINKWISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.path() == tmp_path / "xdg" / "linkwise" / cache.FOLDER
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the standard
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.path() == tmp_path / ".cache" / "linkwise" / cache.FOLDER


def test_a_full_folder_loses_what_was_not_used_for_longest(folder, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST_FOLDER", 1000)
    for i in range(8):
        assert cache.write(f"{i:064x}", bytes([i]) * 300)
        os.utime(folder / f"{i:064x}", (i + 1.0, i + 1.0))
    names = {file.name for file in files(folder)}
    assert f"{7:064x}" in names
    assert f"{0:064x}" not in names
    assert sum(file.stat().st_size for file in files(folder)) <= 1000
    assert cache.read(f"{7:064x}") == bytes([7]) * 300


@pytest.mark.prove
def test_threads_and_processes_at_once(folder):
    """Several processes ask for the same kernels at the same time; some files are damaged."""
    script = (
        "import sys, numpy as np, linkwise as lw\n"
        "from linkwise.algebra import P, bias, mass, tau\n"
        "for n in (1, 2, 3):\n"
        "    k = lw.compile(mass.inv @ (tau - bias), lw.models.pendulum(n))\n"
        "    print(repr(k(np.full(n, 0.3), np.full(n, 0.2), np.ones(n)).tolist()))\n"
    )
    source = str(Path(lw.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    texts = {worker.communicate(timeout=PATIENCE)[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 4
    assert len(texts) == 1
    assert len(kernels(folder)) == 3  # their derivation comes with the library
    failures = list[BaseException]()

    def ask():
        try:
            for n in (1, 2, 3):
                value(lw.compile(FORWARD, lw.models.pendulum(n)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for file in files(folder):
        file.write_bytes(file.read_bytes()[:-5])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_has_no_content_to_compare_is_not_kept(folder, compiled):
    def placement(q):
        zero = 0.0 * q[..., 0]
        p = np.stack([zero, zero, q[..., 0]], axis=-1)
        return np.broadcast_to(np.eye(3), (*np.shape(q)[:-1], 3, 3)), p

    b = lw.Builder("own")
    hinge = lw.hinges.CustomHinge("slide", (("x", "m"),), placement)
    b.body("a", "world", hinge, inertia=lw.SpatialInertia.point(2.0, (0, 0, 0.1)))
    mech = b.build()
    with pytest.raises(UnknownContentError):
        digest(mech)
    kernels = [lw.compile(FORWARD, mech) for _ in range(2)]
    assert len(compiled) == 2
    assert not folder.exists()
    np.testing.assert_allclose(kernels[0](np.zeros(1), np.zeros(1), np.ones(1)), 0.5 - 9.81)


def test_hinges_of_other_classes_are_not_kept(folder):
    result = list[float]()
    for scale in (1.0, 2.0):  # a class that was edited between two runs

        @dataclass(frozen=True)
        class Scaled(lw.hinges.Pin):
            def hinge_map(self, q, scale=scale):
                return scale * super().hinge_map(q)

        b = lw.Builder("own")
        inertia = lw.SpatialInertia.point(2.0, (0, 0, 0.1))
        b.body("a", "world", Scaled((0, 1, 0)), inertia=inertia)
        result.append(float(lw.compile(mass, b.build())(np.zeros(1))[0, 0]))
    np.testing.assert_allclose(result[1], 4 * result[0])
    assert not folder.exists()


def test_the_home_in_the_name_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LINKWISE_CACHE", "~/kernels")
    assert cache.path() == tmp_path / "kernels" / cache.FOLDER


# ------------------------------------------------------------------------- a folder of its own


def everything(root):
    """All files below a folder, with their bytes."""
    return {x.relative_to(root): x.read_bytes() for x in root.rglob("*") if x.is_file()}


def fill(count=8, size=300):
    for i in range(count):
        cache.write(f"{i:064x}", bytes([i]) * size)


@pytest.mark.parametrize("through", ["plain", "link"])
def test_other_files_in_the_place_that_was_named_are_not_touched(through, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    (mine / "deep").mkdir(parents=True)
    for name in ("thesis.pdf", "0" * 64, f"{1:064x}.{2:016x}", "deep/data", ".linkwise-notes"):
        (mine / name).write_bytes(b"precious" * 500)
        os.utime(mine / name, (1.0, 1.0))  # older than any kernel
    before = everything(mine)
    place = mine
    if through == "link":
        place = tmp_path / "link"
        place.symlink_to(mine)
    monkeypatch.setenv("LINKWISE_CACHE", str(place))
    monkeypatch.setattr(cache, "LARGEST_FOLDER", 1000)
    fill()
    after = everything(mine)
    assert {x: after[x] for x in before} == before
    assert cache.read(f"{7:064x}") == bytes([7]) * 300  # and kernels are kept
    assert all(x.parts[0] == cache.FOLDER for x in set(after) - set(before))


def test_strange_files_in_the_folder_stay(folder, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST_FOLDER", 1000)
    fill(1)
    strange = ("notes.txt", "f" * 63, "F" * 64, "0" * 65, f"{1:064x}.{2:016x}", ".linkwise-notes")
    for name in strange:
        (folder / name).write_bytes(b"precious" * 500)
        os.utime(folder / name, (1.0, 1.0))
    target = folder.parent / "target"
    target.write_bytes(b"precious")
    (folder / ("a" * 64)).symlink_to(target)
    (folder / ("b" * 64)).mkdir()
    half = folder / f".linkwise-{3:016x}"  # of a process that was killed
    half.write_bytes(b"x" * 2000)
    os.utime(half, (2.0, 2.0))
    fill()
    assert all((folder / name).read_bytes() == b"precious" * 500 for name in strange)
    assert target.read_bytes() == b"precious" and (folder / ("a" * 64)).is_symlink()
    assert (folder / ("b" * 64)).is_dir() and not half.exists()
    assert cache.read(f"{7:064x}") is not None


def test_a_folder_without_the_mark_is_left_alone(folder, compiled):
    folder.mkdir(parents=True, mode=0o700)
    (folder / "notes.txt").write_text("mine")
    mech = lw.models.pendulum(2)
    for _ in range(2):
        lw.compile(FORWARD, mech)
    assert len(compiled) == 2 and [x.name for x in folder.iterdir()] == ["notes.txt"]
    assert [x.name for x in folder.parent.iterdir()] == [cache.FOLDER]  # nothing half is left
    (folder / "notes.txt").unlink()  # an empty one is taken
    for _ in range(2):
        lw.compile(FORWARD, mech)
    assert len(compiled) == 3 and (folder / cache.TAG).read_bytes().startswith(b"Signature: 8a477f")
    (folder / cache.TAG).write_text("something else")
    lw.compile(FORWARD, mech)
    assert len(compiled) == 4


def test_a_folder_that_is_a_link_is_not_followed(folder, compiled):
    elsewhere = folder.parent.parent / "elsewhere"
    mech = lw.models.pendulum(2)
    lw.compile(FORWARD, mech)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = everything(elsewhere)
    lw.compile(FORWARD, mech)
    assert len(compiled) == 2 and everything(elsewhere) == before and folder.is_symlink()


def test_exchanged_files_are_compiled_again(folder, compiled):
    """Both are whole; each belongs to another mechanism than its name says."""
    mechs = [lw.models.pendulum(2), lw.models.pendulum(2, mass=3.0)]
    expected = [value(lw.compile(FORWARD, mech)) for mech in mechs]
    assert not np.allclose(expected[0], expected[1])
    a, b = files(folder)
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)
    for mech, right in zip(mechs, expected, strict=True):
        np.testing.assert_array_equal(value(lw.compile(FORWARD, mech)), right)
    assert len(compiled) == 4
    assert {a.read_bytes(), b.read_bytes()} == {first, second}
    assert a.read_bytes() == first  # and put right


def test_unreadable_contents_are_compiled_again(folder, compiled):
    """A content under a right checksum that is none of ours."""
    mech = lw.models.pendulum(2)
    expected = value(lw.compile(FORWARD, mech))
    (file,) = files(folder)
    for body in (b"", b"{}\n", b"[]\n", b'{"tables": [["x", "f8", [9]]]}\n12', b"\xff\xfe\n"):
        assert cache.write(file.name, body)
        before = len(compiled)
        np.testing.assert_array_equal(value(lw.compile(FORWARD, mech)), expected)
        assert len(compiled) == before + 1
    rollout_of = lw.models.pendulum(1)
    q, v = np.array([0.3]), np.array([0.1])
    right = lw.rollout(rollout_of, q, v, step=1e-3, duration=0.005).q
    made = next(x for x in files(folder) if x != file)
    for body in (b"", b"{}\n", b"[1]\n", b"\xff\xfe\n"):
        assert cache.write(made.name, body)
        before = len(compiled)
        again = lw.models.pendulum(1)  # another object: nothing is left in memory
        np.testing.assert_array_equal(lw.rollout(again, q, v, step=1e-3, duration=0.005).q, right)
        assert len(compiled) == before + 1


# ------------------------------------------------------------------------ the code that makes them


def test_the_key_is_of_the_contents_of_the_code(tmp_path):
    """Neither dates nor the viewer make a difference; every other file does."""

    def read_again():
        package.cache_clear()
        content.cache_clear()

    copy = tmp_path / "linkwise"
    shutil.copytree(Path(lw.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert package(copy) == package()
    read_again()
    for file in copy.rglob("*.py"):
        os.utime(file, (1.0, 1.0))
    assert package(copy) == package()
    (copy / "viewer" / "scene.py").write_text("")
    os.utime(copy / "viewer" / "scene.py", (1.0, 1.0))
    read_again()
    assert package(copy) == package()
    for name in ("codegen/cpu/emit.py", "algebra/expr.py", "sweeps/lower.py", "pipeline.py"):
        text = (copy / name).read_bytes()
        (copy / name).write_bytes(text.replace(b"e", b"f", 1))  # of the same length
        os.utime(copy / name, (1.0, 1.0))
        read_again()
        assert package(copy) != package()
        (copy / name).write_bytes(text)
        os.utime(copy / name, (1.0, 1.0))
    read_again()
    assert package(copy) == package()
    os.utime(copy / "pipeline.py", (1e10, 1e10))  # edited while this process runs
    read_again()
    with pytest.raises(UnknownContentError, match="changed after it was loaded"):
        package(copy)
    read_again()


def test_all_code_that_runs_for_a_kernel_counts(folder, monkeypatch):
    """Whatever runs between a look into the cache and filing the kernel is in its key."""
    root = Path(lw.__file__).parent
    known, seen = set(sources(root)), set[str]()
    looked = cache.read

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(root)):
            seen.add(frame.f_code.co_filename)

    def read(key):
        sys.setprofile(note)
        return looked(key)

    filed = cache.write

    def write(key, body):
        sys.setprofile(None)
        return filed(key, body)

    monkeypatch.setattr(cache, "read", read)
    monkeypatch.setattr(cache, "write", write)
    try:
        mech = lw.models.pendulum(2)
        for rolled in (False, True):
            lw.compile(FORWARD, mech, rolled=rolled)
        bar = lw.models.four_bar()
        lw.loops.constraint_jacobian(bar, bar.neutral())
        for integrator in ("euler", "rk4", "variational"):
            q, v = mech.neutral(), np.ones(mech.nv)
            lw.rollout(mech, q, v, step=1e-3, duration=0.002, integrator=integrator)
    finally:
        sys.setprofile(None)
    assert len(seen) > 30 and seen <= known, sorted(seen - known)


def test_a_passing_object_does_not_lend_its_fingerprint(monkeypatch):
    """Arrays that are made for a moment may get each other's places in memory."""
    from linkwise.codegen.cpu import digest as module

    plain = module._parts

    def passing(thing, memo):
        if isinstance(thing, tuple) and thing and thing[0] == "make":
            yield from (module._of(np.full(100, float(x)), memo) for x in thing[1:])
        else:
            yield from plain(thing, memo)

    monkeypatch.setattr(module, "_parts", passing)
    assert digest(("make", 1, 2)) != digest(("make", 1, 1))
