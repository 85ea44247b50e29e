# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate's reference runner needs of torch, without a device: tensors are bytes, and time is what a kernel says that it takes."""
import contextlib
import math

__version__ = "0.0.0"
SIZES = {"uint8": 1, "int32": 4, "int64": 8, "float32": 4}
FORMATS = {"uint8": "B", "int32": "i", "int64": "q", "float32": "f"}
uint8, int32, int64, float32 = SIZES


class Tensor:
    def __init__(self, memory, dtype, shape):
        self.memory, self.dtype, self.shape = memory, dtype, tuple(shape)

    def cuda(self):
        return Tensor(memoryview(bytearray(self.memory)), self.dtype, self.shape)

    clone = cuda

    def contiguous(self):
        return self

    def view(self, *to):
        if isinstance(to[0], str):
            return Tensor(self.memory, to[0], (len(self.memory) // SIZES[to[0]],))
        shape = list(to[0] if isinstance(to[0], (list, tuple)) else to)
        count = len(self.memory) // SIZES[self.dtype]
        shape = [count // -math.prod(shape) if length == -1 else length for length in shape]
        assert math.prod(shape) == count
        return Tensor(self.memory, self.dtype, shape)

    reshape = view

    def numbers(self):
        return self.memory.cast("B").cast(FORMATS[self.dtype])

    def copy_(self, other):
        for place, number in enumerate(other.numbers()):
            self.numbers()[place] = number

    def data_ptr(self):
        return id(self.memory)


def empty(shape, dtype=float32, device=None):
    return Tensor(memoryview(bytearray(math.prod(shape) * SIZES[dtype])), dtype, shape)


def frombuffer(memory, dtype, count, offset):
    return Tensor(memoryview(memory)[offset : offset + count], dtype, (count,))


def no_grad():
    return contextlib.nullcontext()


class cuda:
    clock = 0.0
    capturing = None

    is_available = staticmethod(lambda: True)
    synchronize = staticmethod(lambda: None)
    empty_cache = staticmethod(lambda: None)

    @staticmethod
    def kernel(microseconds):
        """Takes its time when it runs; in a graph, when that is replayed."""
        if cuda.capturing:
            cuda.capturing.microseconds += microseconds
        else:
            cuda.clock += microseconds

    class CUDAGraph:
        microseconds = 0.0

        def replay(self):
            cuda.clock += self.microseconds

    @staticmethod
    @contextlib.contextmanager
    def graph(captured):
        cuda.capturing = captured
        try:
            yield
        finally:
            cuda.capturing = None

    class Event:
        def __init__(self, enable_timing):
            self.at = 0.0

        def record(self):
            self.at = cuda.clock

        def elapsed_time(self, end):
            return (end.at - self.at) / 1000


class backends:
    class cudnn:
        version = staticmethod(lambda: None)
