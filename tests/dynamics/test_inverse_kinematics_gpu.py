"""Inverse kinematics on a GPU: the text for a card, compiled for this computer, beside the CPU."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cuda.plan import planned
from linkwise.codegen.cuda.source import emit_cuda
from linkwise.codegen.request import Request
from linkwise.dynamics.inverse_kinematics import descent
from linkwise.errors import DeviceError, MissingExtraError, ModelError
from tests.codegen.cuda_on_host import OnHost

COMPILER = shutil.which("g++")


class _Array(np.ndarray):
    """What a card returns."""

    def get(self) -> np.ndarray:
        return np.asarray(self)


class Card:
    """In place of a kernel on a card: the same text on this computer.

    Attributes:
        batches: How many searches each call made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.batches, self.made = folder, list[int](), dict[Any, Any]()

    def kernel(self, mech: Any, formula: Any, nodes: Any) -> Any:
        if (mech, formula, nodes) not in self.made:
            traced, codes, shape = planned(Request(formula, mech, nodes))
            source = emit_cuda(traced, codes, shape, dtype="float64", title=["search"])
            folder = self.folder / str(len(self.made))
            folder.mkdir()
            on_host: Any = OnHost(source, len(traced.inputs), folder, str(COMPILER))
            self.made[mech, formula, nodes] = on_host, traced
        on_host, traced = self.made[mech, formula, nodes]

        def call(*arrays: Any) -> dict[str, Any]:
            count = len(arrays[0])
            self.batches.append(count)
            rows = [np.broadcast_to(np.atleast_2d(x), (count, np.shape(x)[-1])) for x in arrays]
            flat, status, _ = on_host(list(map(np.array, rows)), len(traced.outputs), count)
            assert not status.any()
            ends = np.cumsum([int(np.prod(shape)) for shape in traced.parts])
            parts = zip(descent.NAMES, np.split(flat, ends[:-1], axis=1), traced.parts, strict=True)
            return {n: x.reshape(count, *shape).view(_Array) for n, x, shape in parts}

        return call


@pytest.mark.prove
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("posed", [False, True])
def test_searches_on_a_card(posed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, arm = Card(tmp_path), lw.models.seven_dof_arm()
    monkeypatch.setattr(descent, "_on_gpu", card.kernel)
    monkeypatch.setattr(descent, "cupy", lambda: SimpleNamespace(asarray=np.asarray))
    q = np.array([arm.random(seed=i) for i in range(40)])
    goals = {"hand": lw.forward_kinematics(arm, q, "hand")}
    posture = arm.neutral() if posed else None
    expected = lw.inverse_kinematics(arm, goals, posture=posture)
    result = lw.inverse_kinematics(arm, goals, posture=posture, target="cuda")
    assert card.batches[0] == 40
    assert result.reached.all() and expected.reached.all()
    # A search that passes a singular pose may go on otherwise after a last digit.
    alike = np.abs(result.q - expected.q).max(axis=1) < 1e-7
    assert alike.mean() > 0.95
    assert np.array_equal(result.starts[alike], expected.starts[alike])
    hand = lw.forward_kinematics(arm, result.q, "hand")
    assert np.abs(hand.p - goals["hand"].p).max() < 1e-6
    assert np.abs(hand.rot - goals["hand"].rot).max() < 2e-6
    first = lw.inverse_kinematics(arm, {"hand": goals["hand"][0]}, posture=posture, target="cuda")
    assert np.abs(first.q - result.q[0]).max() < 1e-12 and first.reached
    assert len(result[0].history) == result[0].iterations + 1


@pytest.mark.prove
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("nodes", [False, True])
def test_searches_for_a_center_of_mass_on_a_card(
    nodes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, arm = Card(tmp_path), lw.models.seven_dof_arm()
    monkeypatch.setattr(descent, "_on_gpu", card.kernel)
    monkeypatch.setattr(descent, "cupy", lambda: SimpleNamespace(asarray=np.asarray))
    q = np.array([arm.random(seed=i) for i in range(20)])
    places = lw.dynamics.NodeGoal(position=lw.forward_kinematics(arm, q, "hand").p)
    goals = {"hand": places} if nodes else {}
    center = lw.center_of_mass(arm, q)
    expected = lw.inverse_kinematics(arm, goals, center_of_mass=center)
    result = lw.inverse_kinematics(arm, goals, center_of_mass=center, target="cuda")
    assert card.batches[0] == 20 and result.reached.all()
    alike = np.abs(result.q - expected.q).max(axis=1) < 1e-7
    assert alike.mean() > 0.9
    assert np.abs(lw.center_of_mass(arm, result.q) - center).max() < 2e-6


def test_reasons_of_a_batch_are_a_list() -> None:
    arm = lw.models.seven_dof_arm()
    places = np.array([[0.3, 0.0, 0.5], [9.0, 0.0, 0.0], [0.2, 0.1, 0.6]])
    result = lw.inverse_kinematics(arm, {"hand": lw.dynamics.NodeGoal(position=places)})
    assert len(result.reasons) == len(result.searches) == 3
    assert [x.startswith("reached") for x in result.reasons] == [True, False, True]
    assert result.reasons[-1] == result[2].reason
    with pytest.raises(IndexError):
        result.reasons[3]


def test_other_targets_are_refused() -> None:
    arm, goals = lw.models.seven_dof_arm(), {"hand": np.array([0.3, 0.0, 0.5])}
    with pytest.raises(ModelError, match="target"):
        lw.inverse_kinematics(arm, goals, target="gpu")  # type: ignore[arg-type]
    try:
        from linkwise.codegen.arrays import cupy

        cupy()
    except (MissingExtraError, DeviceError) as error:
        with pytest.raises(type(error)):
            lw.inverse_kinematics(arm, goals, target="cuda")
