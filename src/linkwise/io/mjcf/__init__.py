"""How does a MuJoCo MJCF file become a mechanism, and back?"""

from linkwise.io.mjcf.read import read_mjcf
from linkwise.io.mjcf.write import write_mjcf

__all__ = ["read_mjcf", "write_mjcf"]
