"""How many bodies may a sample mechanism have?"""

from __future__ import annotations

from typing import Final

from linkwise.errors import ModelError

MOST: Final = 1_000_000
"""Most bodies of a sample mechanism; a million take about a minute and a few gigabytes."""


def check_size(what: str, n: object, unit: str, *, least: int = 1, most: int = MOST) -> None:
    """Refuse a number that is no count, or that costs more than a machine has.

    Raises:
        ModelError: n is not a whole number from `least` to `most`.
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ModelError(f"{what} was asked for {n!r} {unit}; give a whole number.")
    count = int(n)  # pyright: ignore[reportArgumentType]
    if count < least:
        raise ModelError(f"{what} was asked for {count} {unit}; it needs at least {least}.")
    if count > most:
        shown = str(count) if count < 10**15 else f"2^{count.bit_length() - 1} or more"
        raise ModelError(
            f"{what} was asked for {shown} {unit}, which no machine holds; at most {most} are made."
        )
