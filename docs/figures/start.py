"""Draw docs/_static/start_motion.png: the arm of docs/tutorial/first_robot.md at five instants.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/start.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gallery import PAPER, SHADOW
from matplotlib.colors import to_rgb
from pages import names_of
from PIL import Image
from raycast import Camera, Solid, picture, solids

from linkwise.spatial import Pose

OUTPUT = Path(__file__).parents[1] / "_static" / "start_motion.png"
SHAPE = (240, 1200)
INSTANTS = (0.0, 0.15, 0.35, 0.7, 3.0)  # [s]
APART = 0.95  # [m]
COLORS = ("#3a4a5c", "#2f6690", "#c8553d")  # of the three links


def main() -> None:
    """Five arms in a row, in one scene, so that all have one scale."""
    names = names_of("tutorial/first_robot.md")
    arm, motion = names["arm"], names["motion"]
    camera = Camera(-50.0, 18.0)
    scene: list[Solid] = []
    for k, t in enumerate(INSTANTS):
        aside = Pose.translation(k * APART * camera.plane[0])
        for solid, color in zip(solids(arm, motion.at(t)[0]), COLORS, strict=True):
            scene.append(Solid(solid.shape, aside @ solid.pose, np.array(to_rgb(color))))
    paper, shadow = (np.array(to_rgb(color)) for color in (PAPER, SHADOW))
    image = picture(scene, camera, SHAPE, paper=paper, shadow=shadow)
    pixels = np.clip(image * 255.0, 0.0, 255.0).astype(np.uint8)
    sheet = Image.fromarray(pixels).quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
    sheet.save(OUTPUT, optimize=True)


if __name__ == "__main__":
    main()
