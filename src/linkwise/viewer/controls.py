"""The panel beside the picture: sliders for hinges, boxes for layers, buttons, and the time bar."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.spatial.array import Array
from linkwise.viewer.dial import Dial, dialled, dials, reading
from linkwise.viewer.look import LAYERS
from linkwise.viewer.playback import SPEEDS

if TYPE_CHECKING:
    from linkwise.viewer.server import Viewer

MOST = 150
"""Sliders; the hinges of longer mechanisms are set from Python."""

STEPS = 500
"""Steps of a slider from end to end."""


def _round(value: float) -> float:
    """A number with few enough digits for its box."""
    return round(value, 3) if abs(value) < 100.0 else round(value, 1)


class Controls:
    """The panel of one viewer. It passes all input to the viewer."""

    def __init__(self, gui: Any, viewer: Viewer) -> None:
        self._gui, self._viewer = gui, viewer
        self._sliders = dict[Dial, Any]()
        self._boxes = dict[str, Any]()
        self._time: Any = None
        self._play: Any = None
        self._message = gui.add_markdown("")
        self._message.visible = False
        if viewer.motion is not None:
            self._add_playback()
        self._add_joints()
        self._add_layers()

    # ------------------------------------------------------------------------------- building

    def _add_playback(self) -> None:
        viewer, gui = self._viewer, self._gui
        assert viewer.motion is not None
        start, length = viewer.motion.start, viewer.motion.duration
        with gui.add_folder("Play"):
            self._play = gui.add_button("Pause" if viewer.playing else "Play")
            step = max(length / 1000.0, 1e-6)
            end = start + max(length, step)
            self._time = gui.add_slider("time [s]", start, end, step, start)
            given = f"{viewer.playback.speed:g}×"
            choices = SPEEDS if given in SPEEDS else (*SPEEDS, given)
            speed = gui.add_dropdown("speed", choices, initial_value=given)
            loop = gui.add_checkbox("loop", viewer.playback.loop)

        def toggle(event: Any) -> None:
            if viewer.playing:
                viewer.pause()
            else:
                viewer.resume()

        def seek(event: Any) -> None:
            if event.client is not None:
                viewer.pause()
                viewer.seek(float(self._time.value))

        def faster(event: Any) -> None:
            viewer.playback.speed = float(str(speed.value).rstrip("×"))

        def again(event: Any) -> None:
            viewer.playback.loop = bool(loop.value)

        self._play.on_click(toggle)
        self._time.on_update(seek)
        speed.on_update(faster)
        loop.on_update(again)

    def _add_joints(self) -> None:
        viewer, gui = self._viewer, self._gui
        every = dials(viewer.mech, viewer.reach)
        many = len(every) > 24
        with gui.add_folder("Joints", expand_by_default=viewer.motion is None or not many):
            buttons = gui.add_button_group("set", ("start", "neutral", "random"))
            for dial in every[:MOST]:
                self._sliders[dial] = self._slider(dial)
            if len(every) > MOST:
                gui.add_markdown(f"{len(every) - MOST} more are set from Python: `viewer.set(q)`.")

        def press(event: Any) -> None:
            viewer.pause()
            {"start": viewer.reset, "neutral": viewer.neutral, "random": viewer.random}[
                str(buttons.value)
            ]()

        buttons.on_click(press)

    def _slider(self, dial: Dial) -> Any:
        low, high = _round(dial.low), _round(dial.high)
        high = max(high, low + 1e-4)
        shown = _round(reading(self._viewer.mech, dial, self._viewer.q))
        value = float(np.clip(shown, low, high))
        bounds = f"{dial.low:.4g} to {dial.high:.4g}"
        hint = f"limits {bounds}" if dial.limited else "no limits"
        if dial.label.endswith("[rad]") and dial.limited:
            hint += f", {np.rad2deg(dial.low):.4g}° to {np.rad2deg(dial.high):.4g}°"
        slider = self._gui.add_slider(
            dial.label,
            low,
            high,
            10.0 ** np.floor(np.log10((high - low) / STEPS)),
            value,
            hint=hint,
        )

        def moved(event: Any) -> None:
            if event.client is not None:
                self._turned(dial)

        slider.on_update(moved)
        return slider

    def _add_layers(self) -> None:
        viewer, gui = self._viewer, self._gui
        with gui.add_folder("Show"):
            for layer, about in LAYERS.items():
                if not viewer.has(layer):
                    continue
                box = gui.add_checkbox(layer, viewer.shows(layer), hint=about)
                self._boxes[layer] = box

                def tick(event: Any, layer: str = layer, box: Any = box) -> None:
                    if event.client is not None:
                        viewer.show(layer, bool(box.value))

                box.on_update(tick)

    # ------------------------------------------------------------------------------ both ways

    def _turned(self, dial: Dial) -> None:
        """A slider was moved in a page."""
        viewer = self._viewer
        group = {
            d: float(np.clip(s.value, d.low, d.high))
            for d, s in self._sliders.items()
            if d.body == dial.body
        }
        viewer.dial(dial.hinge, lambda q: dialled(viewer.mech, q, dial.body, group))

    def update(self, q: Array, *, but: str | None = None) -> None:
        """Put the sliders where q (nq,) is; those of one hinge may be left alone."""
        for dial, slider in self._sliders.items():
            if dial.hinge == but:
                continue
            shown = _round(reading(self._viewer.mech, dial, q))
            value = float(np.clip(shown, slider.min, slider.max))
            if abs(value - float(slider.value)) > 1e-9:
                slider.value = value

    def tick(self, layer: str, on: bool) -> None:
        """Show in the box of a layer whether it is shown."""
        box = self._boxes.get(layer)
        if box is not None and bool(box.value) != on:
            box.value = on

    def clock(self, t: float, playing: bool) -> None:
        """Put the time bar where time is."""
        if self._time is not None and abs(float(self._time.value) - t) > 1e-9:
            self._time.value = float(np.clip(t, self._time.min, self._time.max))
        label = "Pause" if playing else "Play"
        if self._play is not None and self._play.label != label:
            self._play.label = label

    def tell(self, text: str) -> None:
        """A line at the top of the panel; empty for none."""
        shown = html.escape(text).replace("[", "\\[").replace("`", "'").replace("*", "\\*")
        if self._message.content != shown:
            self._message.content = shown
        if self._message.visible != bool(text):
            self._message.visible = bool(text)
