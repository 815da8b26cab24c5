"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

    import linkwise as lw

The names here are the everyday ones; `__init__.pyi` lists them. Each namespace holds the rest of
its subject: `lw.hinges`, `lw.dynamics`, `lw.loops`, `lw.grasp`, `lw.tasks`, `lw.inertial`,
`lw.simulation`, `lw.study`, `lw.control`, `lw.identification`, `lw.algebra`, `lw.estimation`,
`lw.papers`, `lw.models`, `lw.convert`, `lw.plot`, `lw.viewer`. Everything is imported on first
use, so that `import linkwise` is fast.
"""

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

__version__ = "0.1.0"

_named, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # pyright: ignore


def __getattr__(name: str) -> object:
    """A public name, imported on first use; names of other namespaces are pointed out."""
    try:
        return _named(name)
    except AttributeError:
        from importlib.util import find_spec

        if name.startswith("_") or name in __all__ or find_spec(f"linkwise.{name}"):
            raise
    place = _namespace_of(name)
    where = f"it is lw.{place}.{name}" if place else "dir(linkwise) lists names and namespaces"
    raise AttributeError(f"module 'linkwise' has no attribute {name!r}; {where}")


def _namespace_of(name: str) -> str:
    """The namespace whose file exports a name, or nothing; no namespace is imported."""
    from pathlib import Path

    for file in sorted(Path(__file__).parent.glob("*/__init__.py")):
        if file.parent.name in __all__ and f" {name} as {name}" in file.read_text("utf-8"):
            return file.parent.name
    return ""


del lazy_loader
