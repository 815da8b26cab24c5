"""White noise with the covariance of spatial inertia.

A body of mass m, centre of mass c and rotational inertia J_c about it has

    M = L L*,   L = [ J_c^½   √m c~ ]     W = L w,   w white
                [  0      √m 1  ]

In words: a random force of variance m in every direction at the centre of mass, and a random moment
of covariance J_c beside it. No mass, no force: M may be singular.
"""

from __future__ import annotations

import numpy as np

from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks


def inertia_root(mech: Mechanism) -> Array:
    """L (n, 6, 6) with M = L L* of every body."""
    inertias = mech.inertias
    moments, axes = np.linalg.eigh(inertias.J_com)
    # Rounding may leave moments of rods and points below zero.
    J_root = axes * np.sqrt(np.maximum(moments, 0.0))[..., None, :]
    m_root = np.sqrt(inertias.mass)[..., None, None]
    zero = np.zeros_like(J_root)
    return blocks(J_root, m_root * skew(inertias.com), zero, m_root * np.eye(3))


def draw_process(root: Array, white: Array) -> Array:
    """W (count, 6 n) from white numbers of that shape."""
    return np.einsum("kij,ckj->cki", root, white.reshape(len(white), -1, 6)).reshape(white.shape)
