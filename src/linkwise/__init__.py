"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

    import linkwise as lw

The names here are the everyday ones; `__init__.pyi` lists them. Each namespace holds the rest of
its subject: `lw.hinges`, `lw.dynamics`, `lw.loops`, `lw.grasp`, `lw.tasks`, `lw.inertial`,
`lw.simulation`, `lw.algebra`, `lw.estimation`, `lw.papers`, `lw.models`, `lw.convert`, `lw.plot`,
`lw.viewer`. Everything is imported on first use, so that `import linkwise` is fast.
"""

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # pyright: ignore

del lazy_loader
