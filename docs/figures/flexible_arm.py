"""Draw flexible_arm.png and flexible_vibrations.png of docs/_static: model_flexible_bodies.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/flexible_arm.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save

from linkwise.viewer.camera import framed
from linkwise.viewer.look import LIGHT
from linkwise.viewer.motion import subject_of
from linkwise.viewer.render import Renderer
from linkwise.viewer.scene import scene_of


def main() -> None:
    """The arm in steps, its bending over time, and the modes of its upper link."""
    names = names_of("how_to/model_flexible_bodies.md")
    figure, panels = plt.subplots(1, 4, figsize=(13.0, 3.6), facecolor=PAPER)
    for panel in panels:
        panel.set_facecolor(PAPER)
        panel.spines[["top", "right"]].set_visible(False)
    for panel, color, (name, run) in zip(panels, COLORS, names["runs"].items(), strict=False):
        for t in np.arange(0.0, 0.75, 0.05):
            k = int(np.argmin(np.abs(run.t - t)))
            for link in ("upper", "lower"):
                line = drawn(names["arm"], names[link], link, run.q[k])
                panel.plot(*line[:2], color=color, lw=1.6, alpha=0.25 + 0.7 * t / 0.75)
        panel.set_title(f"{name}: first 0.7 s", color=INK, fontsize=11, loc="left")
        panel.set(aspect="equal", xlim=(-0.1, 1.9), ylim=(-0.6, 1.0))
        panels[2].plot(run.t, 1e3 * run.q[:, 4], color=color, lw=1.3, label=name)
    panels[2].set_title("bending of the lower link [mm]", color=INK, fontsize=11, loc="left")
    panels[2].set_xlabel("time [s]", color=INK)
    panels[2].grid(True, color=FAINT, alpha=0.2)
    panels[2].legend(frameon=False, fontsize=9)
    body = names["upper"]
    for i, (color, frequency) in enumerate(zip(COLORS, body.frequencies, strict=False)):
        x, y = body.positions[:, 0], body.modes[:, 4, i]
        panels[3].plot([0.0, *x], [0.0, *y], color=color, marker=".", label=f"{frequency:.1f} Hz")
    panels[3].set_title("modes of the upper link", color=INK, fontsize=11, loc="left")
    panels[3].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    save(figure, "flexible_arm.png")
    vibrations(names["natural"])


def vibrations(natural) -> None:
    """Natural vibrations as the viewer draws them, both ways."""
    figure, panels = plt.subplots(1, 4, figsize=(13.0, 2.8), facecolor=PAPER)
    for panel, shape in zip(panels, natural, strict=True):
        far = [int(np.argmax(sign * np.sin(np.pi * shape.t))) for sign in (1.0, -1.0)]
        _, _, motion = subject_of(shape)
        drawn = scene_of(shape.mech)
        camera = framed(drawn, shape.q[0], motion, ("shapes",))
        renderer = Renderer(drawn, LIGHT, camera, (480, 400))  # one camera for both
        both = [renderer.draw(shape.q[k]) for k in far]
        panel.imshow(np.minimum(*both)[90:])
        panel.set_title(f"{shape.frequency:.1f} Hz", color=INK, fontsize=11, loc="left")
        panel.axis("off")
    figure.tight_layout()
    save(figure, "flexible_vibrations.png")


def drawn(arm, body, name: str, q: np.ndarray) -> np.ndarray:
    """The axis of a bent link in the world (3, n + 1)."""
    points = body.shape(q[arm.q_slice(f"{name}.modes")])
    pose = arm.pose(q, name)
    return (pose.rot @ np.concatenate([np.zeros((1, 3)), points]).T) + pose.p[:, None]


if __name__ == "__main__":
    main()
