"""As much of CuPy as kernels use, with the processor for a card: NumPy under other names."""

import ctypes
import types
from contextlib import nullcontext

import numpy as np

from linkwise.codegen.cuda import device as cuda_kernel, memory
from tests.codegen.cuda_on_host import OnHost

BLOCKS = 2
"""That the card has room for."""


class CardArray(np.ndarray):
    """An array "on the card": NumPy functions of the code under test must not take it."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self):
        return types.SimpleNamespace(id=0)

    def get(self):
        return np.array(self).view(np.ndarray)


def on_card(x, dtype=None):
    return np.array(x, dtype=dtype).view(CardArray)


class Device(nullcontext):
    """The card, with the shared memory of a large one."""

    @property
    def attributes(self):
        return {memory.ROOM: 227 << 10}


def fake():
    """The module."""
    result = types.ModuleType("cupy")
    result.ndarray = CardArray
    result.asarray = result.array = on_card
    result.ascontiguousarray = lambda x, dtype=None: np.ascontiguousarray(x, dtype).view(CardArray)
    result.zeros = lambda shape, dtype: np.zeros(shape, dtype).view(CardArray)
    result.zeros_like, result.empty_like, result.copyto = np.zeros_like, np.empty_like, np.copyto
    result.split, result.where, result.clip = np.split, np.where, np.clip
    result.broadcast_to = lambda x, shape: np.broadcast_to(x, shape).view(CardArray)
    result.ones = lambda shape, dtype: np.ones(shape, dtype).view(CardArray)
    result.concatenate = lambda x, axis: np.concatenate(x, axis=axis).view(CardArray)
    result.empty = lambda shape, dtype: np.full(shape, 77, dtype).view(CardArray)
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, getDevice=lambda: 0)
    result.cuda = types.SimpleNamespace(runtime=runtime, Device=Device)
    return result


def loader(folder, compiler):
    """In place of the card's compiler."""
    made = []

    def load(cp, source, device):
        inputs = source.text.count("const T *in")
        place = folder / str(len(made))
        place.mkdir()
        host = OnHost(source, inputs, place, compiler)
        made.append(host)

        def launch(grid, block, arguments, shared_mem):
            assert block == (source.threads,) and shared_mem == source.shared
            *given, count = arguments
            full = -(-int(count) // source.states)
            assert grid == ((min(full, BLOCKS) if source.stay else full),)
            assert count.dtype == np.int64 and len(given) == 2 * inputs + 3
            steps = [ctypes.c_int64(int(x)) for x in given[1 : 2 * inputs : 2]]
            pointers = [x.data.ptr if isinstance(x, CardArray) else int(x) for x in given]
            for i, step in enumerate(steps):
                pointers[2 * i + 1] = ctypes.addressof(step)
            addresses = (ctypes.c_void_p * len(pointers))(*pointers)
            host.library.launch(addresses, ctypes.c_int64(int(count)), grid[0], 0)

        return cuda_kernel._Loaded(launch, BLOCKS, source)

    return load
