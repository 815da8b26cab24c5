"""Draw docs/_static/rope.png: the rope of examples/rope_two_arms.py.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/rope.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import rope_two_arms  # noqa: E402

if __name__ == "__main__":
    rope_two_arms.main([str(ROOT / "docs" / "_static" / "rope.png")])
