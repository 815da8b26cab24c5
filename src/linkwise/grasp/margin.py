"""How far the forces of a grasp are from slipping, twisting, tipping and breaking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import unknown_name
from linkwise.grasp.contact import LIMITS
from linkwise.grasp.grasp import Grasp, check_grasp
from linkwise.spatial.array import Array, ArrayLike

WORDS = {"press": "breaks", "slip": "slips", "twist": "twists", "tip": "tips"}
"""What a contact does when a limit is passed."""


@dataclass(frozen=True, slots=True, eq=False)
class GraspMargins:
    """Margins of each contact against each limit.

    Attributes:
        names: Names of the contacts, ℓ of them.
        values: (..., ℓ, 4) in newtons, in the order of `limits`: positive where the contact holds,
            inf for a limit that it does not have.
        limits: "press", "slip", "twist", "tip".
    """

    names: tuple[str, ...]
    values: Array
    limits: tuple[str, ...] = LIMITS

    @property
    def smallest(self) -> Array:
        """The smallest margin of all (...) [N]."""
        return self.values.min(axis=(-2, -1))

    @property
    def holds(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether all contacts hold (...)."""
        return self.smallest >= 0.0

    def of(self, contact: str, limit: str) -> Array:
        """One margin (...) [N].

        Raises:
            UnknownNameError: No contact or no limit of that name.
        """
        if contact not in self.names:
            raise unknown_name("contact", contact, self.names, owner="the grasp")
        if limit not in self.limits:
            raise unknown_name("limit", limit, self.limits, owner="the margins of a contact")
        return self.values[..., self.names.index(contact), self.limits.index(limit)]

    @property
    def weakest(self) -> tuple[str, str]:
        """Contact and limit of the smallest margin, over the whole batch if there is one."""
        i = np.unravel_index(int(np.argmin(self.values)), self.values.shape)
        return self.names[i[-2]], self.limits[i[-1]]

    def __str__(self) -> str:
        if self.values.ndim > 2:
            return f"margins of {', '.join(self.names)}, {len(self.values)} states"
        lines = [f"{'contact':12}" + "".join(f"{limit:>10}" for limit in self.limits) + "   [N]"]
        for name, row in zip(self.names, self.values, strict=True):
            cells = "".join(f"{x:10.3f}" if np.isfinite(x) else f"{'-':>10}" for x in row)
            over = [WORDS[limit] for limit, x in zip(self.limits, row, strict=True) if x < 0.0]
            lines.append(f"{name:12}{cells}   {', '.join(over) or 'holds'}")
        return "\n".join(lines)


def grasp_margins(grasp: Grasp, forces: ArrayLike) -> GraspMargins:
    """How far contact forces are from the limits of their contacts.

    Expression:
        press: f_n;  slip: μ f_n - |f_t|, by the elliptic law μ f_n - √(|f_t|² + (μ m_n/γ)²);
        twist: f_n - |m_n|/γ;  tip: f_n - |m_t|/r
    Source: 001-II, Appendix A: the contact forces have to stay in their friction cones, which
        "must be continually verified".

    Args:
        grasp: The grasp.
        forces: On the object, in the contacts' frames (ℓ, 6) or (batch, ℓ, 6) [N m, N].

    Returns:
        The margins in newtons; negative where a contact would slip, twist, tip or break.
    """
    check_grasp(grasp, "grasp_margins")
    f = grasp.check_forces(forces)
    each = [contact.margins(f[..., i, :]) for i, contact in enumerate(grasp.contacts.values())]
    return GraspMargins(grasp.names, np.stack(each, axis=-2))
