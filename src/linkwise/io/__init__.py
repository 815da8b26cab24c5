"""How do URDF and MJCF files become a mechanism, and back?"""
