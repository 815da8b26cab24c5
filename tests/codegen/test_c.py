"""Emitted C: compiled with every warning an error, against kernels, matrices and its own test."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, bias, f, mass, tau
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import leaves
from linkwise.algebra.parse import parse
from linkwise.cli import main
from linkwise.cli.export_c import QUANTITIES, Quantity, default_name, export
from linkwise.codegen.c.selftest import evaluate
from linkwise.codegen.c.source import CSource
from linkwise.codegen.c.text import check_identifier, comment, distinct, identifier, plain
from linkwise.codegen.scalar import parameters, status
from linkwise.errors import LoweringError, ModelError
from linkwise.model import Drive
from linkwise.spatial import SpatialInertia

COMPILER = shutil.which("gcc") or shutil.which("cc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

ROBOTS = {
    "puma560": lw.models.puma560,
    "seven_dof_arm": lw.models.seven_dof_arm,
    "quadruped": lw.models.quadruped,
    "random_tree": lambda: lw.models.random_tree(4, 3),
}
DYNAMICS = ("forward_dynamics", "inverse_dynamics", "jacobian")
CASES = [("puma560", quantity) for quantity in QUANTITIES]
CASES += [("random_tree", quantity) for quantity in QUANTITIES if quantity[-13:] != "space_inertia"]
CASES += [(robot, quantity) for robot in ("seven_dof_arm", "quadruped") for quantity in DYNAMICS]


@dataclass(frozen=True)
class Compiled:
    """An emitted function in a shared object, the self-test in it."""

    function: ctypes._CFuncPtr
    selftest: ctypes._CFuncPtr
    dtype: str

    def __call__(self, arrays, shape):
        """The status and the result."""
        kind = np.float64 if self.dtype == "float64" else np.float32
        out = np.full(shape, 7.0, dtype=kind)
        given = [np.ascontiguousarray(a, dtype=kind) for a in arrays]
        code = self.function(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, out)))
        return code, out


def compiled(folder: Path, made: CSource, options=("-O1",)) -> Compiled:
    return from_texts(folder, made.name, made.texts, made.dtype, options)


def from_texts(folder: Path, name: str, texts, dtype="float64", options=("-O1",)) -> Compiled:
    for ending, text in zip((".h", ".c"), texts, strict=True):
        (folder / f"{name}{ending}").write_text(text, encoding="ascii")
    library = folder / f"{name}.so"
    flags = [*STRICT, *options, "-shared", "-fPIC", f"-D{name.upper()}_SELFTEST"]
    build(*flags, f"{name}.c", "-o", str(library), "-lm", folder=folder)
    loaded = ctypes.CDLL(str(library))
    return Compiled(getattr(loaded, name), loaded.main, dtype)


def build(*arguments: str, folder: Path):
    done = subprocess.run(
        [str(COMPILER), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]


def state(mech, sizes, rng):
    """Random values of all inputs, by name."""
    drawn = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
    return {name: drawn.get(name, rng.standard_normal(size)) for name, size in sizes}


def agree(result, expected, bound):
    scale = max(1e-9, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(result / scale, expected / scale, rtol=0.0, atol=bound)


# ------------------------------------------------------------------------------------ numbers


@pytest.mark.few(5)
@needs_compiler
@pytest.mark.parametrize(("robot", "quantity"), CASES)
def test_agrees_with_the_kernel_and_with_matrices(robot, quantity, tmp_path):
    mech, request = ROBOTS[robot](), QUANTITIES[quantity]
    about_nodes = {"J", "X_B"} & {leaf.name for leaf in leaves(request.expr)}
    nodes = [mech.bodies[-1].name] if about_nodes else []
    name = default_name(robot, quantity)
    ours = compiled(tmp_path, export(request, mech, name, nodes=nodes))
    assert ours.selftest() == 0
    kernel = lw.compile(request.expr, mech, nodes=nodes)
    rng = np.random.default_rng(5)
    for _ in range(3):
        given = state(mech, kernel.traced.inputs, rng)
        code, out = ours(given.values(), kernel.traced.shape)
        assert code == 0
        agree(out, kernel(**given), 1e-12)
        values = {k: x for k, x in given.items() if k not in "qv"}
        dense = Dense(mech, given["q"], given.get("v"), nodes=nodes, values=values)
        agree(out, dense(request.expr), 1e-11 if quantity == "operational_space_inertia" else 1e-12)
        again = ours(given.values(), kernel.traced.shape)[1]
        np.testing.assert_array_equal(again, out)


@needs_compiler
def test_an_expression_with_forces_on_two_nodes(tmp_path):
    mech = lw.models.random_tree(4, 8)
    expr = mass.inv @ (tau - bias + J.T @ f)
    nodes = [mech.bodies[-1].name, mech.bodies[1].name]
    made = export(Quantity(expr, "", ""), mech, "pushed", nodes=nodes)
    ours = compiled(tmp_path, made)
    kernel = lw.compile(expr, mech, nodes=nodes)
    given = state(mech, kernel.traced.inputs, np.random.default_rng(2))
    code, out = ours(given.values(), kernel.traced.shape)
    assert code == 0 and ours.selftest() == 0
    agree(out, kernel(**given), 1e-12)
    assert "#define PUSHED_F_SIZE 12" in made.header


@needs_compiler
@pytest.mark.parametrize("text", ["v* mass v", "V", "(J mass^-1 J*)^-1 J mass^-1 tau"])
def test_numbers_and_vectors_of_other_spaces(text, tmp_path):
    mech, expr = lw.models.puma560(), parse(text)
    ours = compiled(tmp_path, export(Quantity(expr, "", ""), mech, "other", nodes=["link_6"]))
    assert ours.selftest() == 0
    kernel = lw.compile(expr, mech, nodes=["link_6"])
    given = state(mech, kernel.traced.inputs, np.random.default_rng(3))
    dense = Dense(mech, given["q"], given.get("v"), nodes=["link_6"], values=given)
    agree(ours(given.values(), kernel.traced.shape)[1], dense(expr), 1e-11)


def test_an_inverse_that_needs_pivots_is_refused():
    with pytest.raises(LoweringError, match="it is not symmetric"):
        lw.compile(parse("(J mass^-1 J* + J tau f*)^-1 f"), lw.models.puma560(), nodes=["link_6"])


@needs_compiler
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1.99e4, 2.01e4, 1e6, 1e12])
def test_angles_of_any_size(scale, tmp_path):
    """Gravity on a pendulum: sines of the emitted code against those of Python."""
    mech = lw.models.pendulum(1)
    made = export(QUANTITIES["bias_force"], mech, "swing")
    ours = compiled(tmp_path, made, options=("-O2",))
    for angle in scale * np.random.default_rng(0).uniform(-1, 1, 32):
        q, v = np.array([angle]), np.zeros(1)
        code, out = ours([q, v], (1,))
        assert code == 0
        np.testing.assert_allclose(out, Dense(mech, q, v)(bias), rtol=1e-13, atol=1e-14)


@needs_compiler
@pytest.mark.parametrize(
    ("robot", "quantity"), [("quadruped", "inverse_dynamics"), ("puma560", "mass_matrix_inverse")]
)
def test_float32(robot, quantity, tmp_path):
    mech, request = ROBOTS[robot](), QUANTITIES[quantity]
    made = export(request, mech, "short_one", dtype="float32")
    assert "double" not in made.header.split("#ifndef")[1]
    assert "(double)NAN" not in made.source
    # Without its self-test the source never leaves float: every constant has its f.
    made.write(tmp_path)
    strict = [*STRICT, "-Wdouble-promotion", "-Wfloat-conversion"]
    build(*strict, "-c", "short_one.c", folder=tmp_path)
    ours = compiled(tmp_path, made)
    assert ours.selftest() == 0
    kernel = lw.compile(request.expr, mech)
    given = state(mech, kernel.traced.inputs, np.random.default_rng(1))
    code, out = ours(given.values(), kernel.traced.shape)
    assert code == 0 and out.dtype == np.float32
    agree(out.astype(float), kernel(**given), 2e-5)


@needs_compiler
def test_without_and_with_fused_arithmetic(tmp_path):
    """FP_FAST_FMA is the compiler's to say; both forms of the macros are right."""
    mech, request = lw.models.seven_dof_arm(), QUANTITIES["forward_dynamics"]
    header, source = export(request, mech, "fused").texts
    kernel = lw.compile(request.expr, mech)
    given = state(mech, kernel.traced.inputs, np.random.default_rng(4))
    for way in ("-UFP_FAST_FMA", "-DFP_FAST_FMA"):
        folder = tmp_path / way
        folder.mkdir()
        text = source.replace("#ifdef FP_FAST_FMA", f"#if {int('-D' in way)}")
        ours = from_texts(folder, "fused", (header, text))
        assert ours.selftest() == 0
        agree(ours(given.values(), (7,))[1], kernel(**given), 1e-12)


# ----------------------------------------------------------------------------------- trouble


@needs_compiler
def test_statuses(tmp_path):
    mech = lw.models.quadruped()
    ours = compiled(tmp_path, export(QUANTITIES["inverse_dynamics"], mech, "walk"))
    q, zero = mech.neutral(), np.zeros(mech.nv)
    assert ours([q, zero, zero], (mech.nv,))[0] == status.FINE
    for bad in (math.nan, math.inf, -math.inf):
        for which in range(3):
            given = [q.copy(), zero.copy(), zero.copy()]
            given[which][-1] = bad
            code, out = ours(given, (mech.nv,))
            assert code == status.INPUT and np.isnan(out).all()
    off = q.copy()
    off[:4] *= 1.001
    code, out = ours([off, zero, zero], (mech.nv,))
    assert code == status.quaternion(0) and np.isnan(out).all()
    code, out = ours([q, zero, 1e308 * (1.0 + zero)], (mech.nv,))
    assert code == status.RESULT and np.isnan(out).all()


def idle_hand():
    """A hand that nothing resists in the hinge unless the drive has armature."""
    heavy = SpatialInertia.from_com(1.0, (0.0, 0.1, 0.2), (0.1, 0.1, 0.1))
    b = lw.Builder("idle")
    b.body("arm", "world", lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=heavy)
    b.body("hand", "arm", lw.hinges.Pin((0.0, 0.0, 1.0)), drive=Drive(armature=0.1))
    return b.build()


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_hinge_that_nothing_resists_is_named(dtype, tmp_path):
    """The first body in trouble, not those whose numbers it spoils; the kernel says the same."""
    mech, request = idle_hand(), QUANTITIES["forward_dynamics"]
    made = export(request, mech, "idle", parameters=["armature"], dtype=dtype)
    ours = compiled(tmp_path, made)
    assert ours.selftest() == 0
    assert "  6  nothing resists the hinge of body 1, hand" in made.header.replace(" *   ", "  ")
    assert "#define IDLE_HINGE_SINGULAR(body) (4 + 2 * (body))" in made.header
    kernel = lw.compile(request.expr, mech, parameters=["armature"], dtype=dtype)
    for armature, code in (([0.0, 0.1], 0), ([0.0, 0.0], 6), ([-9.0, 0.1], 4)):
        given = [np.zeros(2), np.zeros(2), np.ones(2), np.array(armature)]
        result, out = ours(given, (2,))
        assert result == code
        assert np.isfinite(out).all() if code == 0 else np.isnan(out).all()
        theirs = np.empty((), np.int32)
        kernel(*given, status=theirs)
        assert theirs == code


@needs_compiler
def test_a_singular_matrix_over_nodes(tmp_path):
    """Six directions of a tip that six hinges move, the arm stretched out."""
    mech, request = lw.models.puma560(), QUANTITIES["operational_space_inertia"]
    ours = compiled(tmp_path, export(request, mech, "stretched", nodes=["link_6"]))
    code, out = ours([np.array([0.3, 0.2, 0.4, 0.7, 0.0, 0.5])], (6, 6))  # axes 4 and 6 in line
    assert code == status.MATRIX and np.isnan(out).all()
    assert ours([np.array([0.3, 0.2, 0.4, 0.7, 0.6, 0.5])], (6, 6))[0] == status.FINE


def test_what_is_singular_everywhere_is_refused():
    with pytest.raises(LoweringError, match="singular in nearly every one of 64 random states"):
        export(QUANTITIES["operational_space_inertia"], lw.models.chain(3), "no", nodes=["link_3"])


# ------------------------------------------------------------------------- numbers as inputs


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_the_mechanism_stay_inputs(dtype, tmp_path):
    mech = lw.models.seven_dof_arm()
    node = mech.nodes[-1].name
    names = ["gravity", "inertia", f"payload:{node}", "armature", "locked"]
    made = export(QUANTITIES["forward_dynamics"], mech, "varied", parameters=names, dtype=dtype)
    assert made.arguments == ("q", "v", "tau", *names)
    ours = compiled(tmp_path, made)
    assert ours.selftest() == 0
    kernel = lw.compile(QUANTITIES["forward_dynamics"].expr, mech, parameters=names)
    given = state(mech, kernel.traced.inputs, np.random.default_rng(6))
    given |= {name: kernel.nominal(name) for name in names}
    given["gravity"] = np.array([1.0, 2.0, -3.0])
    given["inertia"] = 1.5 * given["inertia"]
    given["locked"] = np.arange(7) % 3 == 0
    given[names[2]] = parameters.numbers(SpatialInertia.from_com(1.0, (0.1, 0, 0), (0.1, 0.2, 0.2)))
    code, out = ours(given.values(), (7,))
    assert code == 0
    agree(out, kernel(**given), 1e-12 if dtype == "float64" else 2e-5)
    assert (out[::3] == 0.0).all() and (out[1::3] != 0.0).all()
    folded = re.sub(r"\s*\n \*\s+", " ", made.header)
    for part in (
        "gravity[3] acceleration of free fall, world axes gravity[0] x [m/s^2]",
        f"inertia[10] {mech.bodies[1].name}, mass [kg]",
        f"payload_{node}[10] inertia of something welded to {node}",
        "locked[7] 1 where a joint velocity is held, 0 where it is free",
    ):
        assert part in re.sub(r" +", " ", folded), part


# -------------------------------------------------------------------------------- lw.compile


@needs_compiler
def test_the_target_c(tmp_path):
    mech, expr = lw.models.pendulum(2), mass.inv @ (tau - bias)
    made = lw.compile(expr, mech, target="c")
    kernel = lw.compile(expr, mech)
    assert made.arguments == kernel.arguments and made.shape == kernel.signature.shape
    assert made.ops == kernel.ops and made.dtype == "float64"
    assert made.name == f"{identifier(mech.name)}_kernel" and f"int {made.name}(" in made.header
    assert "operations for one state" in made.explain() and str(expr) in made.explain()
    swing = made.named("swing")
    assert [path.name for path in swing.write(tmp_path / "new")] == ["swing.h", "swing.c"]
    assert (tmp_path / "new" / "swing.c").read_text() == swing.source
    given = [np.array([0.3, -1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.25])]
    agree(compiled(tmp_path, swing)(given, (2,))[1], kernel(*given), 1e-12)
    with pytest.raises(ModelError, match="use for instance"):
        made.named("no name")
    with pytest.raises(LoweringError, match="it is not symmetric"):
        lw.compile(parse("(J mass^-1 J* + J tau f*)^-1 f"), mech, nodes=["tip"], target="c")


def test_c_needs_no_machine_code():
    """The C path has to work where llvmlite is not installed."""
    program = (
        "import sys; sys.modules['llvmlite'] = None; import linkwise as lw\n"
        "from linkwise.algebra import mass, tau\n"
        "made = lw.compile(mass.inv @ tau, lw.models.pendulum(2), target='c', dtype='float32')\n"
        "assert 'float *out' in made.header"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_the_output_may_be_an_input(tmp_path):
    mech = lw.models.puma560()
    ours = compiled(tmp_path, export(QUANTITIES["forward_dynamics"], mech, "same"))
    q, v, force = mech.random(1), mech.random_velocity(2), np.arange(6.0)
    expected = ours([q, v, force], (6,))[1]
    for which in range(3):
        given = [q.copy(), v.copy(), force.copy()]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in given]
        assert ours.function(*pointers, pointers[which]) == 0
        np.testing.assert_array_equal(given[which], expected)


@needs_compiler
def test_the_self_test_finds_a_wrong_number(tmp_path):
    mech = lw.models.puma560()
    header, source = export(QUANTITIES["mass_matrix"], mech, "spoilt").texts
    assert source.count("    out[7] = ") == 1
    wrong = source.replace("    out[7] = ", "    out[7] = 1e-9 + ")
    assert from_texts(tmp_path, "spoilt", (header, wrong)).selftest() == 1
    careless = source.replace("if (!isfinite(q[i]))", "if (0)")
    (tmp_path / "b").mkdir()
    assert from_texts(tmp_path / "b", "spoilt", (header, careless)).selftest() == 1


# ------------------------------------------------------------------------------------- names

HOSTILE = [
    "*/ int main(void) { return 1; } /*",
    "a/*b",
    "back\\",
    'quote" %s %n \\n',
    "trigraph ??/",
    "new\nline\r#error",
    "Łódź ✈ 机器人 \u202e",
    "//*//**/",
    "x" * 300,
    "int",
]


def hostile_robot(name: str):
    builder = lw.Builder(name)
    inertia = SpatialInertia.from_com(1.0, (0.1, 0.2, 0.0), (0.1, 0.2, 0.15))
    builder.body(
        f"{name} body", "world", lw.hinges.Pin((0, 1, 0)), inertia=inertia, hinge_name=name
    )
    builder.node(f"{name} node", f"{name} body", (0.0, 0.0, 1.0))
    return builder.build()


@needs_compiler
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_comments(name, tmp_path):
    mech = hostile_robot(name)
    function = default_name(mech.name, "jacobian")
    made = export(QUANTITIES["jacobian"], mech, function, nodes=[f"{name} node"])
    ours = compiled(tmp_path, made)
    assert ours.selftest() == 0
    out = ours([np.zeros(1)], (6, 1))[1]
    np.testing.assert_allclose(out[:, 0], [0, 1, 0, 1, 0, 0], atol=1e-15)
    assert all(" " <= c <= "~" or c == "\n" for text in made.texts for c in text)
    assert max(len(line) for line in made.header.splitlines()) < 200


@pytest.mark.parametrize("text", [*HOSTILE, "", " ", "123", "_x", "é", "q"])
def test_identifiers(text):
    name = identifier(text)
    assert check_identifier(name) == name
    assert "*/" not in plain(text) and "/*" not in plain(text) and "??" not in plain(text)
    assert "\n" not in plain(text) and "\\" not in plain(text)
    assert comment([text]).count("*/") == 1


def test_a_comment_keeps_every_word_and_empty_lines():
    words = [f"word{i}" for i in range(30)]
    result = comment(["first", "", "  " + " ".join(words)], width=60)
    assert result.split("\n")[:3] == ["/*", " * first", " *"]
    assert [x for x in result.split() if x.startswith("word")] == words
    assert max(map(len, result.split("\n"))) <= 60


def test_the_self_test_allows_rounding_alone():
    """Of accelerations of about 10 rad/s², 1e-12 of them and what float32 tells of growth."""
    source = lw.compile(mass.inv @ (tau - bias), lw.models.pendulum(2), target="c").texts[1]
    match = re.search(r"selftest_allowed\[4\] = \{(.*?)\}", source)
    assert match is not None
    assert all(1e-14 < float(x) < 1e-9 for x in match[1].split(","))


@pytest.mark.parametrize("name", ["", "a b", "2x", "double", "class", "sinf", "x1", "é", "a" * 99])
def test_names_that_c_cannot_have(name):
    with pytest.raises(ModelError, match="use for instance"):
        check_identifier(name)


def test_distinct_names():
    assert distinct(["q", "Q", "out", "a-b", "a b"], taken=["out"]) == [
        *("q", "Q_2", "out_", "a_b", "a_b_2")
    ]


# ------------------------------------------------------------------------------- the command


@needs_compiler
def test_the_command_writes_what_a_strict_compiler_takes(tmp_path, capsys):
    folder = tmp_path / "made" / "here"
    arguments = ["export-c", "puma560", "--quantity", "forward_dynamics", "-o", str(folder)]
    assert main(arguments) == 0
    assert "wrote" in capsys.readouterr().out
    name = "puma560_forward_dynamics"
    assert sorted(x.name for x in folder.iterdir()) == [f"{name}.c", f"{name}.h"]
    flags = [*STRICT, "-O2", f"-D{name.upper()}_SELFTEST"]
    build(*flags, f"{name}.c", "-o", "selftest", "-lm", folder=folder)
    done = subprocess.run([folder / "selftest"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip().endswith("ok")
    build("-x", "c++", "-Wall", "-Werror", "-fsyntax-only", f"{name}.h", folder=folder)
    header = (folder / f"{name}.h").read_text()
    for part in ("tau[5]  joint_6 [N m]", "out[0]  joint_1 [rad/s^2]", "Scalar operations:"):
        assert part in header
    for part in ("mass^-1 (tau - C)", "Derivation:", "of puma560", lw.__version__):
        assert part in header
    source = (folder / f"{name}.c").read_text()
    assert source.count("#include") == 3  # its header, math.h; stdio.h for the self-test only
    assert "malloc" not in source
    assert main(arguments) == 0  # its own files may be written again


def test_files_of_others_are_kept(tmp_path, capsys):
    arguments = ["export-c", "pendulum", "--quantity", "mass_matrix", "-o", str(tmp_path)]
    precious = tmp_path / "pendulum_1_mass_matrix.c"
    assert main([*arguments, "--name", "pendulum_1_mass_matrix"]) == 0
    for content in ("int precious;\n", "", "/*\n * Written by linkwise export-", "/* x */\n"):
        precious.write_text(content)
        before = (tmp_path / "pendulum_1_mass_matrix.h").stat().st_mtime_ns
        assert main([*arguments, "--name", "pendulum_1_mass_matrix"]) == 2
        assert "was not written by linkwise export-c" in capsys.readouterr().err
        assert precious.read_text() == content
        assert (tmp_path / "pendulum_1_mass_matrix.h").stat().st_mtime_ns == before
    assert main([*arguments, "--name", "pendulum_1_mass_matrix", "--force"]) == 0
    assert "pendulum_1_mass_matrix(" in precious.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["puma560", "--quantity", "jacobian"], "give --node"),
        (["puma560", "--quantity", "jacobian", "--node", "nowhere"], "no node or body called"),
        (["puma560", "--expr", "mass +", "--name", "x"], "mass"),
        (["puma560", "--quantity", "mass_matrix", "--name", "a-b"], "use for instance 'a_b'"),
        (["nothing", "--quantity", "mass_matrix"], "no file or built-in mechanism"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, message, tmp_path, capsys):
    assert main(["export-c", *arguments, "-o", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    where = str(tmp_path / "file" / "folder")
    assert main(["export-c", "pendulum", "--quantity", "bias_force", "-o", where]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_robot_without_freedom_is_refused():
    mech = lw.models.pendulum(1)
    held = mech.lock([mech.bodies[0].hinge_name])
    with pytest.raises(ModelError, match="nothing to compute"):
        export(QUANTITIES["mass_matrix"], held, "held")


@pytest.mark.parametrize("expr", [-mass, mass.inv, bias], ids=str)
def test_the_graph_in_numpy_is_the_expression(expr):
    """What the self-test expects: -𝓜 has a node of its own for the sign."""
    mech = lw.models.pendulum(2)
    traced = lw.compile(expr, mech, target="c").traced
    q, v = np.array([[0.3, -0.7]]), np.array([[0.4, 0.9]])
    given = [q, v] if expr is bias else [q]
    expected = Dense(mech, q[0], v[0])(expr).ravel()
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_allclose(evaluate(traced, given)[0], expected, rtol=1e-12)
