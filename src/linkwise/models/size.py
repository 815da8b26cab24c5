"""How many bodies may a sample mechanism have?"""

from __future__ import annotations

from typing import Final

MOST_BODIES: Final = 1_000_000
"""Most bodies of a sample mechanism; a million take about a minute and a few gigabytes."""
