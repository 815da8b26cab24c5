"""Pages inside the page, for motions in space: what they have in common is written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from linkwise.tour.block import Playback

SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
const parts = JSON.parse(document.getElementById("playbacks").textContent);
const frames = [...document.querySelectorAll("figure.playback iframe")];
function fill(frame) {
  frame.srcdoc = parts.shared + parts[dark.matches ? "dark" : "light"][frames.indexOf(frame)];
}
const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (entry.isIntersecting) { seen.unobserve(entry.target); fill(entry.target); }
}), { rootMargin: "300px" });
frames.forEach((frame) => seen.observe(frame));
dark.addEventListener("change", () => frames.forEach((frame) => frame.srcdoc && fill(frame)));
"""
"""Fills a frame when it comes into sight; its paper is that of the page."""


def frame(playback: Playback) -> str:
    """Where a motion is shown; frames stand in the order of `script`'s motions.

    It may run its own script and nothing else: it reaches neither this page nor a network.
    """
    return (
        f'<iframe sandbox="allow-scripts" title="{escape(playback.caption)}">'
        "</iframe><noscript><p>Motions in space need JavaScript.</p></noscript>"
    )


def script(playbacks: Sequence[Playback]) -> str:
    """What fills the frames: the viewer once, and each motion."""
    if not playbacks:
        return ""
    pages = [text for playback in playbacks for text in (playback.light, playback.dark)]
    shared = _beginning(pages)
    parts = {
        "shared": shared,
        "light": [playback.light[len(shared) :] for playback in playbacks],
        "dark": [playback.dark[len(shared) :] for playback in playbacks],
    }
    data = json.dumps(parts).replace("<", "\\u003c")  # so that no tag inside ends the script
    return (
        f'<script type="application/json" id="playbacks">{data}</script>\n<script>{SCRIPT}</script>'
    )


def _beginning(texts: Sequence[str]) -> str:
    """What all texts begin with."""
    low, high = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:same]
