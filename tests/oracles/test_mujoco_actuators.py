"""Random actuators on random MJCF models: forces, bounds and activations against MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.actuator_force import with_actuator_force
from linkwise.dynamics.kernels import tree_of
from tests.io.mjcf_random import RandomModel
from tests.io.mjcf_text import read

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.oracle


DYNAMICS = ("", 'dyntype="filterexact" dynprm="0.1"', 'dyntype="integrator"')


class Driven(RandomModel):
    """A random model with fixed tendons and actuators of every kind that is read."""

    def text(self) -> str:
        text = super().text()
        parts = text.split("<site ")[1:]
        self.sites = [part.split('"')[1] for part in parts if part.startswith("name=")]
        bounded = self.chance(0.5)  # then without sites, whose forces such bounds hold in MuJoCo
        self.sites = [] if bounded else self.sites
        for name in self.scalar_joints if bounded else ():
            if self.chance(0.6):
                most = self.numbers(1, 0.2, 3)
                bounds = f'actuatorfrcrange="-{most} {most}"'
                text = text.replace(f'<joint name="{name}" ', f'<joint name="{name}" {bounds} ')
        tendons = self.tendons()
        actuators = "".join(self.actuator() for _ in range(8)) if self.scalar_joints else ""
        end = f"{tendons}<actuator>{actuators}</actuator></mujoco>"
        return text.replace("</mujoco>", end)

    def tendons(self) -> str:
        self.ropes: list[str] = []
        if len(self.scalar_joints) < 2:
            return ""
        out = ""
        for _ in range(2):
            self.ropes.append(self.name("t"))
            ends = self.rng.sample(self.scalar_joints, 2)
            parts = "".join(f'<joint joint="{x}" coef="{self.numbers(1)}"/>' for x in ends)
            out += f'<fixed name="{self.ropes[-1]}">{parts}</fixed>'
        return f"<tendon>{out}</tendon>"

    def target(self) -> str:
        kind = self.rng.choice(["joint", "joint", "jointinparent", "tendon", "site"])
        if kind == "tendon" and self.ropes:
            return f'tendon="{self.rng.choice(self.ropes)}" gear="{self.numbers(1, 0.5, 3)}"'
        if kind == "site" and self.sites:
            return f'site="{self.rng.choice(self.sites)}" gear="{self.numbers(6)}"'
        kind = kind if kind.startswith("joint") else "joint"
        gear = self.maybe(0.7, lambda: f'gear="{self.numbers(1, -4, 4)}"')
        return f'{kind}="{self.rng.choice(self.scalar_joints)}" {gear}'

    def actuator(self) -> str:
        number, tag = (
            self.numbers,
            self.rng.choice(
                ["motor", "position", "velocity", "intvelocity", "damper", "cylinder", "general"]
            ),
        )
        more = {
            "position": f'kp="{number(1, 1, 30)}" {self.maybe(0.5, lambda: self.kv())}',
            "velocity": f'kv="{number(1, 1, 9)}"',
            "intvelocity": f'kp="{number(1, 1, 30)}" actrange="-0.4 0.6"',
            "damper": f'kv="{number(1, 1, 9)}" ctrlrange="0 {number(1, 0.2, 1)}"',
            "cylinder": f'timeconst="0.1" area="{number(1, 0.5, 2)}" bias="{number(3)}"',
            "general": (
                f'gaintype="affine" gainprm="{number(3)}" biastype="affine" biasprm="{number(3)}" '
                + self.rng.choice(DYNAMICS)
            ),
        }.get(tag, "")  # fmt: skip
        ranged = tag not in ("damper",) and self.chance(0.4)
        more += f' ctrlrange="{number(1, -0.5, 0)} {number(1, 0.1, 0.5)}"' if ranged else ""
        more += self.maybe(0.4, lambda: f' forcerange="{number(1, -1, 0)} {number(1, 0.1, 1)}"')
        return f'<{tag} name="{self.name("a")}" {self.target()} {more}/>'

    def kv(self) -> str:
        return f'kv="{self.numbers(1, 0, 5)}"'


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", range(60))
def test_joint_forces_of_actuators_are_those_of_mujoco(seed):
    text = Driven(seed).text()
    mech, model = read(text), mujoco.MjModel.from_xml_string(text)
    assert len(mech.actuators) == model.nu
    if not model.nu:
        pytest.skip("no joint to drive")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    layout, data = lw.convert.mujoco_layout(mech, model), mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        q = mech.normalise(rng.uniform(-1.0, 1.0, mech.nq))
        v, u = rng.standard_normal(mech.nv), rng.standard_normal(model.nu)
        a = np.clip(0.3 * rng.standard_normal(model.na), -0.4, 0.4)
        data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
        data.ctrl[:], data.act[:] = u, a
        mujoco.mj_forward(model, data)
        activations = a if model.na else None
        ours = with_actuator_force(tree_of(mech), q, v, np.zeros(mech.nv), u, activations)
        B = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)
        theirs = B.T @ data.qfrc_actuator
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())
        assert np.count_nonzero(theirs) > 0
