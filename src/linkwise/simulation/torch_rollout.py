# pyright: basic
# (Torch is optional, and has no type information here)
"""Rollouts of tensors that require gradients: `backward` runs the motion in reverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments import is_tracked
from linkwise.errors import ModelError
from linkwise.simulation.rates import as_velocities

if TYPE_CHECKING:
    from linkwise.simulation.rollout_result import Rollout

torch: Any = import_module("torch")


def differentiable(
    run: Callable[..., Rollout], arrays: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> Rollout:
    """The rollout whose records follow the gradients of what it is given.

    Args:
        run: Makes a rollout of numbers.
        arrays: q, v, tau and the goal of a law.
        named: The arguments `inputs` and `parameters`, arrays by name each.
    """
    if torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling():
        raise ModelError(
            "lw.rollout was called inside torch.func or torch.compile; its gradients are those of "
            "`backward` and `torch.autograd.grad`. It takes batches of motions itself."
        )
    leaves = {name: x for name, x in arrays.items() if is_tracked(x)}
    leaves |= {n: x for each in named.values() for n, x in each.items() if is_tracked(x)}
    motion = _Motion(run, arrays, named, tuple(leaves))
    q, v = _Records.apply(motion, *leaves.values())
    assert motion.result is not None
    return replace(motion.result, q=q, v=v)


@dataclass(slots=True, eq=False)
class _Motion:
    """A rollout between its run and its gradient."""

    run: Callable[..., Rollout]
    arrays: Mapping[str, Any]
    named: Mapping[str, Mapping[str, Any]]
    leaves: tuple[str, ...]  # names of the tensors that require a gradient
    result: Rollout | None = None

    def made(self) -> Rollout:
        """The rollout of the numbers."""
        inner = {name: _plain(each) or None for name, each in self.named.items()}
        self.result = self.run(**_plain(self.arrays), **inner)
        if self.result.origin is None:
            self.result.gradient()  # raises, and says why it has none
        return self.result

    def gradients(self, weights: tuple[Any, Any]) -> list[Any]:
        """Those by the tensors, for weights of q and v."""
        assert self.result is not None
        made, start = self.result.gradient(*weights), _plain(self.arrays)["q"]
        each = {"q": made.q, "v": made.v, **made.inputs}
        each = {name: _tensor(each[name]) for name in self.leaves}
        if "q" in self.leaves:  # by entries: tangent to the unit sphere of quaternions
            begin = start.cpu().numpy() if isinstance(start, torch.Tensor) else start
            of_velocities = as_velocities(self.result.mech, np.asarray(begin, np.float64))
            each["q"] = (torch.from_numpy(of_velocities).to(each["q"]) @ each["q"][..., None])[
                ..., 0
            ]
        return list(each.values())


def _plain(each: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays without the history of Torch: of NumPy, or tensors on the GPU."""
    return {n: _numbers(x) if isinstance(x, torch.Tensor) else x for n, x in each.items()}


def _numbers(tensor: Any) -> Any:
    return tensor.detach() if tensor.is_cuda else tensor.detach().cpu().numpy()


def _tensor(array: Any) -> Any:
    return array if isinstance(array, torch.Tensor) else torch.from_numpy(np.array(array))


class _Records(torch.autograd.Function):
    """The records q and v of a motion."""

    @staticmethod
    def forward(ctx: Any, motion: _Motion, *leaves: Any) -> Any:
        ctx.motion, ctx.shapes = motion, [(x.shape, x.dtype, x.device) for x in leaves]
        ctx.set_materialize_grads(False)
        result = motion.made()
        # Torch marks what is returned; the records themselves stay plain numbers.
        return tuple(_tensor(x).detach() for x in (result.q, result.v))

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise ModelError(
                "the second derivative of a rollout was requested; it has first derivatives only. "
                "Leave out create_graph=True."
            )
        numbers = [None if x is None else _numbers(x) for x in weights]
        parts = list[Any]()
        for x, (shape, dtype, device) in zip(
            ctx.motion.gradients((numbers[0], numbers[1])), ctx.shapes, strict=True
        ):
            part = x.to(dtype=dtype, device=device)
            parts.append(
                part.reshape(shape) if part.numel() == shape.numel() else part.sum_to_size(shape)
            )
        return None, *parts
