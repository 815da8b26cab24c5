"""Modal data of Nastran: a cantilever of bars with a load, written by pyNastran and read back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.flexible import nastran

A, I, YOUNG, DENSITY, LOAD, PARTS = 2e-4, 4e-9, 70e9, 2700.0, 0.3, 12
ROOT, TIP = 1, PARTS + 1
CARDS = [
    "SOL 103",
    "CEND",
    "BEGIN BULK",
    f"MAT1,1,{YOUNG:.6e},,0.3,{DENSITY}",
    f"PBAR,1,1,{A:.6e},{2 * I:.6e},{I:.6e},{3 * I:.6e}",
    *(f"GRID,{i + 1},,{0.5 + i / PARTS:.8f},0.,0." for i in range(PARTS + 1)),
    *(f"CBAR,{i},1,{i},{i + 1},0.,1.,0." for i in range(1, PARTS + 1)),
    f"CONM2,100,{TIP},,{LOAD}",
    "ENDDATA",
]


def lumped():
    """The eigenvectors that Nastran finds for lumped masses, and their eigenvalues."""
    from linkwise.flexible.beam_element import Material, elements_of

    xs = np.linspace(0.0, 1.0, PARTS + 1)
    nodes = np.column_stack([xs, 0 * xs, 0 * xs])
    pairs = [(i, i + 1) for i in range(PARTS)]
    table = np.tile([A, I, 2 * I, 3 * I], (PARTS, 1))
    K, M = np.zeros((2, 6 * PARTS + 6, 6 * PARTS + 6))
    material, straight = Material(YOUNG, YOUNG / 2.6, DENSITY, None), np.zeros(PARTS)
    for x in elements_of(nodes, pairs, table, material, straight):
        K[np.ix_(x.coordinates, x.coordinates)] += x.stiffness()
        for i in (x.start, x.end):
            M[range(6 * i + 3, 6 * i + 6), range(6 * i + 3, 6 * i + 6)] += (
                DENSITY * A * x.length / 2
            )
    M[range(-3, 0), range(-3, 0)] += LOAD
    compliant = np.linalg.inv(K[6:, 6:]) @ M[6:, 6:]
    values, vectors = np.linalg.eig(compliant)
    order = np.argsort(-values.real)[:4]
    shapes = np.zeros((4, PARTS + 1, 6))
    shapes[:, 1:] = vectors.real[:, order].T.reshape(4, PARTS, 6)[:, :, [3, 4, 5, 0, 1, 2]]
    return shapes, 1.0 / values.real[order]


@pytest.mark.prove
def test_a_modal_analysis_is_read(tmp_path):
    pytest.importorskip("pyNastran", reason="the extra nastran is not installed")
    from pyNastran.op2.op2 import OP2
    from pyNastran.op2.tables.oug.oug_eigenvectors import RealEigenvectorArray

    (tmp_path / "beam.bdf").write_text("\n".join(CARDS))
    shapes, values = lumped()
    output, numbers = OP2(debug=None), np.arange(1, 5, dtype="int32")
    points = np.column_stack([np.arange(1, PARTS + 2), np.ones(PARTS + 1)]).astype("int32")
    single = [x.astype("float32") for x in (shapes, values, np.sqrt(values) / (2 * np.pi))]
    table = RealEigenvectorArray.add_modal_case("OUGV1", points, single[0], 1, numbers, *single[1:])
    table.table_code = table.data_code["table_code"] = 7  # eigenvectors
    output.eigenvectors[1] = table
    output.set_as_msc()
    output.write_op2(str(tmp_path / "beam.op2"))
    files = (tmp_path / "beam.bdf", tmp_path / "beam.op2")
    body = lw.flexible.load_nastran(*files, root=ROOT, tip=TIP, damping=0.01)
    np.testing.assert_allclose(body.frequencies, np.sqrt(values) / (2 * np.pi), rtol=1e-5)
    np.testing.assert_allclose(body.masses.sum(), DENSITY * A + LOAD, rtol=1e-6)
    np.testing.assert_allclose(body.positions[body.tip], (1.0, 0.0, 0.0), atol=1e-6)
    load = lw.SpatialInertia.point(LOAD)
    section = {"area": A, "bending": (I, 2 * I), "young": YOUNG, "density": DENSITY}
    beam = lw.flexible.beam(1.0, **section, modes=4, tip=load)
    np.testing.assert_allclose(body.frequencies, beam.frequencies, rtol=0.02)
    findings = body.validate()
    assert not [x for x in findings if x.severity == "error"]
    assert "no-second" in [x.code for x in findings]
    few = lw.flexible.load_nastran(*files, root=ROOT, tip=TIP, points=[4, 7, 10], modes=2)
    assert few.modes.shape[0] == 5
    np.testing.assert_allclose(few.masses.sum(), body.masses.sum(), rtol=1e-12)
    with pytest.raises(lw.ModelError, match="moves in the modes"):
        lw.flexible.load_nastran(*files, root=TIP, tip=ROOT)
    with pytest.raises(lw.ParseError, match="does not exist"):
        lw.flexible.load_nastran(tmp_path / "none.bdf", files[1], root=ROOT, tip=TIP)


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyNastran.bdf.bdf", None)
    with pytest.raises(lw.LinkwiseError, match=r"linkwise\[nastran\]"):
        lw.flexible.load_nastran("a.bdf", "a.op2", root=1, tip=2)


def _unknown(kind):
    """An element that pyNastran cannot weigh."""

    def mass():
        raise NotImplementedError

    return SimpleNamespace(type=kind, eid=7, node_ids=(1, 2), Mass=mass)


def test_only_elements_without_mass_are_left_out():
    bulk = SimpleNamespace(elements={7: _unknown("CELAS2")}, masses={})
    masses, _ = nastran._masses(bulk, [1, 2])
    np.testing.assert_array_equal(masses, 0.0)
    bulk.elements[7] = _unknown("CHEXA")
    with pytest.raises(ModelError, match="CHEXA 7 weighs"):
        nastran._masses(bulk, [1, 2])
