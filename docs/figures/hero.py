"""Draw docs/_static/hero.png, the row of mechanisms at the top of the documentation.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/hero.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gallery import PAPER, SHADOW
from matplotlib.colors import to_rgb
from PIL import Image
from raycast import Camera, picture, solids

from linkwise import models
from linkwise.model import Mechanism

OUTPUT = Path(__file__).parents[1] / "_static" / "hero.png"
HEIGHT, WIDTH = 300, 280

Posture = Mapping[str, float | tuple[float, ...]]
ARM: Posture = {
    "shoulder_yaw": 0.3,
    "shoulder_pitch": 0.5,
    "shoulder_roll": 0.4,
    "elbow_pitch": 1.4,
    "wrist_pitch": 0.7,
}
STRIDE: Posture = {
    "left_shoulder": (0.5, 0.15, 0.0),
    "right_shoulder": (-0.6, -0.15, 0.0),
    "left_elbow": 0.5,
    "right_elbow": 0.9,
    "left_hip": (-0.45, 0.0, 0.0),
    "left_knee": 0.5,
    "left_ankle": (-0.05, 0.0),
    "right_hip": (0.25, 0.0, 0.0),
    "right_knee": 0.15,
    "right_ankle": (-0.4, 0.0),
}


def seen(mech: Mechanism, posture: Posture, camera: Camera, floor: bool = True) -> np.ndarray:
    """One mechanism, (height, width, 3)."""
    q = mech.neutral()
    for hinge, value in posture.items():
        q[mech.q_slice(hinge)] = value
    shadow = np.array(to_rgb(SHADOW)) if floor else None
    paper = np.array(to_rgb(PAPER))
    return picture(solids(mech, q), camera, (HEIGHT, WIDTH), paper=paper, shadow=shadow)


def main() -> None:
    """Five in a row."""
    row = [
        seen(models.seven_dof_arm(), ARM, Camera(-55.0, 20.0)),
        seen(models.stewart(), {}, Camera(-55.0, 20.0)),
        seen(models.humanoid(), STRIDE, Camera(-35.0, 12.0)),
        seen(models.multi_arm(3), {}, Camera(-50.0, 26.0)),
        seen(models.quadruped(), {}, Camera(-50.0, 18.0)),
    ]
    pixels = np.clip(np.concatenate(row, axis=1) * 255.0, 0.0, 255.0).astype(np.uint8)
    sheet = Image.fromarray(pixels).quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
    sheet.save(OUTPUT, optimize=True)


if __name__ == "__main__":
    main()
