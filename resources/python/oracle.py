# SPDX-License-Identifier: GPL-3.0-or-later
"""The oracle of a workload that brings its own, for the gate. messages.py stands before this text.

Runs in a confined process, with shared memory as descriptor 4. It introduces itself, then answers each request in turn:

  {"op": "load", "source", "arrays": "numpy" | "torch" | "lists"}  -> {"text": "torch 2.9.0, Python 3.11.2"}
      runs the source; its functions are called by what follows
  {"op": "run", "function", "declared": bool, "memory": N, "arguments": [{"dtype", "shape", "offset"} | {"value": V}],
   "outputs": [{"name", "shape", "offset"}]}
      calls the function and leaves its results in the memory, as doubles
  {"op": "tell", "function"}  -> {"value": what it returns, as JSON}

In the memory floating-point inputs are doubles, and integers are 64 bits wide; so are results of integers, which come as doubles. An answer is
{"ok": true, ...} or {"error": "why"}.
"""
import mmap
import platform

ITEM = 8  # bytes of an element in the memory
TORCH = {"f64": "float64", "f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
         "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u32": "int64", "u8": "uint8"}
NUMPY = {"f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u32": "uint32", "u8": "uint8"}


class Refused(Exception):
    """What cannot be done, as a sentence."""


def is_whole(dtype):
    return dtype[0] in "iu"


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


class TorchArrays:
    def __init__(self):
        import torch
        self.torch = torch
        self.text = f"torch {torch.__version__}"

    def given(self, memory, dtype, shape, offset, declared):
        torch = self.torch
        wide = torch.int64 if is_whole(dtype) else torch.float64
        values = torch.frombuffer(memory, dtype=wide, count=count_of(shape), offset=offset).reshape(shape)
        wanted = getattr(torch, TORCH[dtype]) if declared or is_whole(dtype) else wide
        return values.to(wanted, copy=True)

    def call(self, function, arguments):
        with self.torch.no_grad():
            return function(*arguments)


class NumpyArrays:
    def __init__(self):
        import numpy
        self.numpy = numpy
        self.text = f"numpy {numpy.__version__}"

    def given(self, memory, dtype, shape, offset, declared):
        values = self.numpy.frombuffer(memory, dtype="int64" if is_whole(dtype) else "float64", count=count_of(shape), offset=offset)
        wanted = NUMPY.get(dtype, "float32") if declared or is_whole(dtype) else "float64"
        return values.reshape(shape).astype(wanted)

    def call(self, function, arguments):
        return function(*arguments)


class Lists:
    """Nested lists of ints and floats."""

    text = "lists"

    def given(self, memory, dtype, shape, offset, declared):
        flat = memoryview(memory)[offset:offset + ITEM * count_of(shape)].cast("q" if is_whole(dtype) else "d").tolist()
        for extent in reversed(shape[1:]):
            flat = [flat[i:i + extent] for i in range(0, len(flat), extent)]
        return flat

    def call(self, function, arguments):
        return function(*arguments)


ARRAYS = {"torch": TorchArrays, "numpy": NumpyArrays, "lists": Lists}


def flattened(value, shape, out):
    """Nested sequences into a list of floats; Refused where they have another shape."""
    if not shape:
        out.append(float(value))
        return
    if not hasattr(value, "__len__") or len(value) != shape[0]:
        found = f"a length of {len(value)}" if hasattr(value, "__len__") else "a single value"
        raise Refused(f"it has {found} where {shape[0]} elements are expected")
    for item in value:
        flattened(item, shape[1:], out)


def put(memory, value, name, shape, offset):
    """Writes a result of any kind into the memory."""
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    kind = type(value)
    if torch is not None and isinstance(value, torch.Tensor):
        if list(value.shape) != shape and not (value.dim() == 0 and count_of(shape) == 1):
            raise Refused(f"{name} has the shape {list(value.shape)}, expected {shape}")
        target = torch.frombuffer(memory, dtype=torch.float64, count=count_of(shape), offset=offset).reshape(shape)
        target.copy_(value.detach().to("cpu").to(torch.float64).reshape(shape))
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        if list(value.shape) != shape and not (value.ndim == 0 and count_of(shape) == 1):
            raise Refused(f"{name} has the shape {list(value.shape)}, expected {shape}")
        numpy.frombuffer(memory, dtype="float64", count=count_of(shape), offset=offset)[:] = value.astype("float64").reshape(-1)
    else:
        flat = []
        try:
            flattened(value, shape if isinstance(value, (list, tuple)) or count_of(shape) != 1 else [], flat)
        except (TypeError, ValueError) as problem:
            raise Refused(f"{name} is a {kind.__name__} that is no tensor: {problem}") from None
        except Refused as problem:
            raise Refused(f"{name} has another shape: {problem}") from None
        memory[offset:offset + ITEM * len(flat)] = struct.pack(f"={len(flat)}d", *flat)


def results_of(returned, names):
    if isinstance(returned, dict):
        missing = [name for name in names if name not in returned]
        if missing:
            raise Refused(f"it returns no {missing[0]}")
        return [returned[name] for name in names]
    if len(names) == 1 and not (isinstance(returned, tuple) and len(returned) == 1):
        return [returned]
    if not isinstance(returned, (tuple, list)) or len(returned) != len(names):
        count = len(returned) if isinstance(returned, (tuple, list)) else 1
        raise Refused(f"it returns {count} results, expected {len(names)}")
    return list(returned)


class Oracle:
    def __init__(self):
        self.arrays = None
        self.functions = {}
        self.memory = None

    def load(self, request):
        self.arrays = ARRAYS[request["arrays"]]()
        self.functions = {"__name__": "oracle"}
        exec(compile(request["source"], "oracle.py", "exec"), self.functions)
        return {"text": f"{self.arrays.text}, Python {platform.python_version()}"}

    def function(self, name):
        found = self.functions.get(name)
        if not callable(found):
            raise Refused(f"it has no function {name}")
        return found

    def run(self, request):
        function = self.function(request["function"])
        if self.memory is None or len(self.memory) < request["memory"]:
            self.memory = mmap.mmap(4, request["memory"])  # what the old one had may still be referred to: it is not closed
        arguments = [given["value"] if "value" in given else
                     self.arrays.given(self.memory, given["dtype"], given["shape"], given["offset"], request["declared"])
                     for given in request["arguments"]]
        outputs = request["outputs"]
        results = results_of(self.arrays.call(function, arguments), [output["name"] for output in outputs])
        for output, value in zip(outputs, results):
            put(self.memory, value, output["name"], output["shape"], output["offset"])
        return {}

    def tell(self, request):
        return {"value": self.function(request["function"])()}


def why(problem):
    """The exception, and the line of the source where it was raised."""
    text = str(problem) or repr(problem)
    if isinstance(problem, Refused):
        return text
    line = None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "oracle.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{type(problem).__name__}: {text}" + (f" (line {line})" if line else "")


def serve():
    connection = channel()
    oracle = Oracle()
    send(connection, {"hello": "klineage-oracle", "version": VERSION})
    handlers = {"load": oracle.load, "run": oracle.run, "tell": oracle.tell}
    while True:
        request = receive(connection)
        try:
            answer = {"ok": True, **handlers[request["op"]](request)}
            json.dumps(answer)
        except (Exception, SystemExit) as problem:  # what a workload's own code raises is an answer
            answer = {"error": why(problem)[:2000]}
        send(connection, answer)


if __name__ == "__main__":
    serve()
