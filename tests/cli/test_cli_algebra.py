"""`linkwise derive`, called as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings

import linkwise as lw
from linkwise.algebra.parse import parse
from linkwise.cli import main
from tests.algebra.test_parse import expressions
from tests.effort import at_most

COMPLIANCE = "B* ψ* H* D⁻¹ H ψ B"


def forms(out: str) -> list[str]:
    """The expressions of a printed derivation."""
    return [
        line[4:] for line in out.splitlines() if line[:4] in ("    ", "  = ") and line[4] != " "
    ]


# ----------------------------------------------------------------------------------- derive


def test_derive_shows_every_step(capsys):
    assert main(["derive", "J mass^-1 J*"]) == 0
    out = capsys.readouterr().out
    lines = forms(out)
    assert lines[0] == "J 𝓜⁻¹ J*"
    assert lines[-1] == COMPLIANCE
    assert "whitened propagation: (I - H ψ K) H φ = H ψ   [000 Lemma 5.1]" in out
    assert "note:" not in out


def test_derive_reads_m_as_the_mass_operator_and_says_so(capsys):
    assert main(["derive", "J M^-1 J*"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("note: M is read as 𝓜, the mass operator")
    assert forms("\n".join(rest))[-1] == COMPLIANCE


def test_derive_checks_on_a_robot_and_plans(capsys):
    assert main(["derive", "mass^-1 (tau - bias)", "--check", "puma560", "--plan"]) == 0
    out = capsys.readouterr().out
    assert "checked on <Mechanism 'puma560'" in out and "every step agrees" in out
    assert out.count("for k = ") == 3


def test_a_failed_check_is_status_1(capsys, monkeypatch):
    from linkwise.algebra.derivation import Derivation

    for error in (1e-3, float("nan")):
        monkeypatch.setattr(Derivation, "check", lambda self, mech, error=error: error)
        assert main(["derive", "mass", "--check", "pendulum"]) == 1
        assert "NOT EQUAL" in capsys.readouterr().out


def test_derive_to_a_form(capsys):
    assert main(["derive", "mass", "--to", "(I + H phi K) D (I + H phi K)*"]) == 0
    assert "Proved in" in capsys.readouterr().out
    assert main(["derive", "H phi", "--to", "H psi"]) == 1
    assert "The two are not equal" in capsys.readouterr().out


def test_derive_proves_equations(capsys):
    assert main(["derive", "(I - H psi K) H phi = H psi"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("(I - H ψ K) H φ = H ψ\nProved in")
    assert main(["derive", "H Pi_bar = 0"]) == 0
    assert main(["derive", "J M^-1 J* = B* Omega B"]) == 0
    assert "note: M is read as" in capsys.readouterr().out


def test_an_identity_of_chains_is_told_as_such(capsys):
    equation = "Omega = Upsilon + psi_tilde* Upsilon + Upsilon psi_tilde"
    assert main(["derive", equation]) == 0
    assert "on serial chains" in capsys.readouterr().out


def test_latex_goes_alone_to_the_output(capsys):
    assert main(["derive", "J M^-1 J*", "--latex", "--check", "pendulum"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("\\begin{aligned}") and shown.out.endswith("\\end{aligned}\n")
    assert "note: M" in shown.err and "every step agrees" in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["derive", "ph M"], "did you mean 'phi'"),
        (["derive", ""], "The text is empty"),
        (["derive", "H = H = H"], "not an equation"),
        (["derive", "H =", "--to", "H"], "--to goes with one expression"),
        (["derive", "H phi = M"], "BODY"),
        (["derive", "mass", "--check", "chain(300)"], "at most 200 bodies"),
        (["derive", "mass", "--check", "pumba560"], "did you mean 'puma560'"),
        (["derive", "(J J*)^-1", "--check", "pendulum"], "J J* is singular on pendulum"),
        (["derive", "H H"], "cannot multiply  H  and  H"),
        (["derive", "(M + phi M phi*)^-1", "--plan"], "cannot invert"),
    ],
)
def test_mistakes_are_status_2_and_explained(arguments, message, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.startswith("linkwise: ")


def test_a_hinge_that_nothing_resists_is_named(tmp_path, capsys):
    builder = lw.Builder("thin").body(
        "arm", hinge=lw.hinges.Pin((0, 1, 0)), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1)
    )
    lw.save(builder.body("ghost", "arm", lw.hinges.Pin((1, 0, 0))).build(), tmp_path / "thin.urdf")
    assert main(["derive", "(I - H psi K) H phi", "--check", str(tmp_path / "thin.urdf")]) == 2
    assert "D is singular at body 'ghost'" in capsys.readouterr().err


@pytest.mark.prove
@settings(max_examples=60, deadline=None)
@given(expressions())
def test_any_expression_is_answered(expr):
    """With a form, or with a reason: never with a crash, and soon."""
    with at_most(2e7):
        assert main(["derive", "--check", "chain(4)", "--plan", "--", f"({expr})"]) in (0, 2)


# -------------------------------------------------------------------------- help, terminals


def test_help_teaches_by_examples_that_work(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["derive", "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    examples = [line.strip() for line in out.splitlines() if line.startswith("  linkwise derive")]
    assert len(examples) >= 5
    for example in examples:
        assert main(_arguments(example)) == 0, example


def _arguments(example: str) -> list[str]:
    """The arguments of an example; two spaces begin its explanation."""
    import shlex

    return shlex.split(example.split("   ")[0])[1:]


def run(arguments: list[str], encoding: str) -> subprocess.CompletedProcess[bytes]:
    entry = "import sys; from linkwise.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", entry, *arguments],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )


def test_a_terminal_without_greek_gets_names_that_can_be_typed():
    done = run(["derive", "J mass^-1 J*"], "ascii")
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode("ascii")
    assert "?" not in out
    assert [parse(form) for form in forms(out)][-1] is parse(COMPLIANCE)


@pytest.mark.few(1)
@pytest.mark.parametrize("encoding", ["latin-1", "cp437", "utf-16"])
def test_any_encoding_survives(encoding):
    for arguments in (["derive", "mass^-1 (tau - bias)", "--plan"], ["derive", "φ̂"]):
        done = run(arguments, encoding)
        assert done.returncode == (2 if "φ̂" in arguments else 0), done.stderr
        assert b"Traceback" not in done.stderr


# ------------------------------------------------------------------------ what is not true


@pytest.mark.parametrize("equation", ["H P Υ = H", "G* Υ = D⁻¹ H", "H P Υ P H* = H P H*"])
def test_what_fails_with_armature_is_not_called_equal(equation, capsys):
    """It is proved for mechanisms without armature, and says that it fails for all others."""
    assert main(["derive", equation]) == 0
    out = capsys.readouterr().out
    assert "on any tree without armature; with armature the two are not equal" in out
    assert "no armature: N = 0" in out


@pytest.mark.parametrize(
    "equation", ["B* B = I", "H H* = I", "Q J = 2 Q J", "𝓜 = H φ M φ* H* + 2 N"]
)
def test_what_is_false_has_no_proof(equation, capsys):
    code = main(["derive", equation])
    out = capsys.readouterr().out
    assert ("not equal" in out) and (code == 1 or "without armature" in out)
