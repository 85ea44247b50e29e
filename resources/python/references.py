# SPDX-License-Identifier: GPL-3.0-or-later
"""Vendor routines of Python packages, for the gate. messages.py stands before this text.

Runs with the provider's name as argument, and shared memory as descriptor 4. It introduces itself, then answers each request in turn:

  {"op": "begin", "tensors": [{"name", "role", "dtype", "shape", "offset", "bytes"}], "memory": N, "sets": N}
      uploads the inputs' bytes from the memory, once for each set, and makes outputs
  {"op": "add", "call": {"op", "buffers": {role: tensor}, "sizes": {role: N}}}  -> {"subject": N, "way": "which of several is the fastest"}
  {"op": "run", "subject": N}       runs it on set 0 and leaves the outputs' bytes in the memory
  {"op": "time", "subject": N, "first": N, "repeats": N}  -> {"ns": of one run}: a CUDA graph replayed between events
  {"op": "end"}                     drops everything

An answer is {"ok": true, ...} or {"error": "why"}. With `--versions` it prints which packages are installed, and ends.
"""
import contextlib
import importlib
import importlib.metadata
import math
import mmap
import os

# Of each provider the packages that may bring it: the first that is installed tells the version.
PACKAGES = {
    "torch": ("torch",),
    "flashinfer": ("flashinfer-python",),
    "fla": ("flash-linear-attention", "fla-core"),
    "flash_qla": ("flash-qla",),
    "fa3": ("flash-attn-3", "fa3-fwd", "tokenspeed-fa3"),
}
OPERATOR_ENDS = ("_nt", "_nn", "_bias", "_nhwc", "_nchw", "_rows", "_cudnn", "_flash", "_varlen", "_even", "_causal", "_rule")
GRAPHS = 64  # most graphs that are kept
EPSILON = 1e-5  # of normalizations


class Refused(Exception):
    """What cannot be done, as a sentence."""


def import_first(*names):
    """The first module of these that there is."""
    problems = []
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError as problem:
            problems.append(str(problem))
    raise ImportError("; ".join(problems))


def fastest(torch, ways):
    """Of several ways to compute the same (name -> function) the fastest as a CUDA graph. One that fails is left out."""
    found, problems = [], []
    for name, run in ways.items():
        try:
            run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                kept = [run() for _ in range(4)]
            del kept
            times = []
            for _ in range(12):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end))
            found.append((sorted(times)[len(times) // 2], name))
            del graph
        except Exception as problem:  # compilers and libraries raise what they like
            problems.append(f"{name}: {problem}")
            print(f"{name}: {problem!r}", file=sys.stderr)
            torch.cuda.synchronize()
    if not found:
        raise Refused("; ".join(problems))
    print("; ".join(f"{name} {ms * 250:.2f} us" for ms, name in sorted(found)), file=sys.stderr)
    return min(found)[1]


def even_sequences(q, buffers):
    """Offsets of packed sequences of one length -> their number."""
    for role in ("cu_q", "cu_k"):
        lengths = (buffers[role][1:] - buffers[role][:-1]).tolist()
        if len(set(lengths)) != 1:
            raise Refused("it takes sequences of one length")
    return buffers["cu_q"].numel() - 1


class TorchOperators:
    """Each takes the buffers of one set by role, and gives a function that runs it and returns its result; what happens here is not timed."""

    def __init__(self, torch):
        self.torch = torch
        torch.backends.cudnn.benchmark = True

    def gemm_nt(self, b):
        return lambda: self.torch.mm(b["a"], b["b"].t(), out=b["out"])

    def gemm_nn(self, b):
        multiply = self.torch.mm if b["a"].dim() == 2 else self.torch.bmm
        return lambda: multiply(b["a"], b["b"], out=b["out"])

    def gemm_nn_bias(self, b):
        return lambda: self.torch.addmm(b["bias"], b["a"], b["b"], out=b["out"])

    def gemm_grouped_nn(self, b):
        ends = b["offsets"][1:].contiguous()
        places = [0] + ends.tolist()
        spans = [slice(first, last) for first, last in zip(places, places[1:])]

        def one_by_one():
            for span, matrix in zip(spans, b["b"]):
                self.torch.mm(b["a"][span], matrix, out=b["out"][span])
            return b["out"]

        return {"one group after another": one_by_one,
                "grouped": lambda: self.torch._grouped_mm(b["a"], b["b"], offs=ends)}

    def conv2d(self, b, layout):
        data = b["data"].permute(0, 3, 1, 2).contiguous(memory_format=layout)
        channels = data.shape[1]
        size = math.isqrt(b["weight"].shape[0] // channels)
        weight = b["weight"].view(size, size, channels, -1).permute(3, 2, 0, 1).contiguous(memory_format=layout)
        convolve = self.torch.nn.functional.conv2d
        return lambda: convolve(data, weight, padding=size // 2).permute(0, 2, 3, 1)

    def conv2d_nhwc(self, b):
        return self.conv2d(b, self.torch.channels_last)

    def conv2d_nchw(self, b):
        return self.conv2d(b, self.torch.contiguous_format)

    def sdpa(self, b, backend, causal=False):
        sequences = even_sequences(b["q"], b)
        q, k, v = (b[role].view((sequences, -1) + tuple(b[role].shape[1:])).transpose(1, 2) for role in ("q", "k", "v"))
        shared = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        attention = self.torch.nn.attention
        attend = self.torch.nn.functional.scaled_dot_product_attention

        def run():
            with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
                return attend(q, k, v, is_causal=causal, **shared).transpose(1, 2).reshape(b["q"].shape)

        return run

    def sdpa_cudnn(self, b):
        return self.sdpa(b, "CUDNN_ATTENTION")

    def sdpa_flash(self, b):
        return self.sdpa(b, "FLASH_ATTENTION")

    def sdpa_cudnn_causal(self, b):
        return self.sdpa(b, "CUDNN_ATTENTION", True)

    def sdpa_flash_causal(self, b):
        return self.sdpa(b, "FLASH_ATTENTION", True)

    def softmax_rows(self, b):
        return lambda: self.torch.softmax(b["in"], -1, out=b["out"])

    def layernorm_rows(self, b):
        normalize, columns = self.torch.nn.functional.layer_norm, b["gamma"].shape
        return lambda: normalize(b["in"], columns, b["gamma"], b["beta"], EPSILON)

    def rmsnorm_rows(self, b):
        normalize, columns = self.torch.nn.functional.rms_norm, b["gamma"].shape
        return lambda: normalize(b["in"], columns, b["gamma"], EPSILON)

    def add_rmsnorm_rows(self, b):
        normalize, columns = self.torch.nn.functional.rms_norm, b["gamma"].shape

        def run():
            self.torch.add(b["in"], b["residual"], out=b["sum"])
            return b["sum"], normalize(b["sum"], columns, b["gamma"], EPSILON)

        return run

    def sum_rows(self, b):
        return lambda: self.torch.sum(b["in"], -1, out=b["out"].view(b["in"].shape[:-1]))

    def cumsum_rows(self, b):
        return lambda: self.torch.cumsum(b["in"], -1, out=b["out"])

    def sort_rows(self, b):
        indices = self.torch.empty(b["in"].shape, dtype=self.torch.int64, device="cuda")
        return lambda: self.torch.sort(b["in"], -1, out=(b["out"], indices))[0]

    def topk_rows(self, b):
        k = b["out"].shape[-1]
        return lambda: self.torch.topk(b["in"], k, -1, sorted=False)

    def topk_sorted_rows(self, b):
        k = b["out"].shape[-1]
        return lambda: self.torch.topk(b["in"], k, -1, sorted=True)


class FlashInferOperators:
    def __init__(self, torch):
        self.torch = torch
        self.module = importlib.import_module("flashinfer")
        self.workspace = None

    def attention_varlen(self, b, causal=False):
        _, heads, dim = b["q"].shape
        if self.workspace is None:
            self.workspace = self.torch.empty(256 << 20, dtype=self.torch.uint8, device="cuda")
        wrapper = self.module.BatchPrefillWithRaggedKVCacheWrapper(self.workspace, "NHD")
        wrapper.plan(b["cu_q"], b["cu_k"], heads, b["k"].shape[1], dim, causal=causal, q_data_type=b["q"].dtype)
        return lambda: wrapper.run(b["q"], b["k"], b["v"])

    def attention_varlen_causal(self, b):
        return self.attention_varlen(b, True)

    def rmsnorm_rows(self, b):
        return lambda: self.module.rmsnorm(b["in"], b["gamma"], EPSILON, out=b["out"])

    def add_rmsnorm_rows(self, b):
        """Works in place, so what it overwrites is copied first."""

        def run():
            b["out"].copy_(b["in"])
            b["sum"].copy_(b["residual"])
            self.module.fused_add_rmsnorm(b["out"], b["sum"], b["gamma"], EPSILON)
            return b["sum"], b["out"]

        return run

    def topk(self, b, **options):
        if not hasattr(self.module, "top_k"):
            raise Refused("this version has no top_k: a later one has")
        rows, k = b["in"].view(-1, b["in"].shape[-1]), b["out"].shape[-1]

        def run(backend):
            os.environ["FLASHINFER_TOPK_ALGO"] = backend
            return self.module.top_k(rows, k, **options)

        return run

    def topk_rows(self, b):
        unsorted = self.topk(b, sorted=False)
        return {"radix": lambda: unsorted("default"), "cub": lambda: unsorted("cub")}

    def topk_sorted_rows(self, b):
        after = self.topk(b, sorted=True)
        inside = self.topk(b, sorted=True, deterministic=True)
        return {"sort afterwards": lambda: after("default"), "sort in the kernel": lambda: inside("default")}

    def gated_delta_rule(self, b):
        """Takes the gates themselves and keeps states as values by keys; its output has the queries' type."""
        module = importlib.import_module("flashinfer.gdn_prefill")
        torch, (batch, tokens, heads, dim) = self.torch, b["v"].shape
        packed = {role: b[role].view(batch * tokens, *b[role].shape[2:]) for role in ("q", "k", "v", "g", "beta")}
        ends = torch.arange(0, batch * tokens + 1, tokens, dtype=torch.int64, device="cuda")
        narrow = torch.empty_like(packed["v"])
        state = torch.empty((batch, heads, dim, dim), dtype=torch.float32, device="cuda")
        end_state = torch.empty_like(state)

        def run(split):
            state.copy_(b["initial_state"].transpose(2, 3))
            module.chunk_gated_delta_rule(
                packed["q"], packed["k"], packed["v"], torch.exp(packed["g"]), packed["beta"], None, state, True, ends,
                output=narrow, output_state=end_state, use_cp=split)
            b["out"].view(narrow.shape).copy_(narrow)
            b["final_state"].copy_(end_state.transpose(2, 3))
            return b["out"], b["final_state"]

        return {"split over the tokens": lambda: run(True), "whole": lambda: run(False)}


def wide_output(torch, module):
    """While it is entered, `module` allocates what is like another tensor in single precision: kernels that write any type then write the
    contract's, and none has to convert afterwards."""

    class Wide:
        def __getattr__(self, name):
            return getattr(torch, name)

        def empty_like(self, like, **options):
            return torch.empty_like(like, **{**options, "dtype": torch.float32})

    @contextlib.contextmanager
    def entered():
        before = module.torch
        module.torch = Wide()
        try:
            yield
        finally:
            module.torch = before

    return entered


class FlaOperators:
    def __init__(self, torch):
        self.torch = torch
        self.chunk = importlib.import_module("fla.ops.gated_delta_rule.chunk")
        self.output = importlib.import_module("fla.ops.common.chunk_o")

    def gated_delta_rule(self, b):
        wide = wide_output(self.torch, self.output)

        def run():
            result = self.chunk.chunk_gated_delta_rule_fwd(
                b["q"], b["k"], b["v"], b["g"], b["beta"], b["q"].shape[-1] ** -0.5, b["initial_state"], True)
            return result[1], result[3]

        def converted():
            out, state = run()
            return out.float(), state

        def direct():
            with wide():
                return run()

        return {"f32 from the kernel": direct, "bf16, then converted": converted}


class FlashQlaOperators:
    def __init__(self, torch):
        self.torch = torch
        self.rule = importlib.import_module("flash_qla.ops.gated_delta_rule.chunk")
        self.output = importlib.import_module("flash_qla.ops.gated_delta_rule.chunk.hopper.fused_fwd")

    def gated_delta_rule(self, b):
        wide = wide_output(self.torch, self.output)

        def run(split):
            result = self.rule.chunk_gated_delta_rule_fwd(
                b["q"], b["k"], b["v"], b["g"], b["beta"], b["q"].shape[-1] ** -0.5, b["initial_state"], None, True,
                auto_cp=split)
            return result[2], result[4]

        def converted(split):
            out, state = run(split)
            return out.float(), state

        def direct(split):
            with wide():
                return run(split)

        return {"f32 from the kernel, split over the tokens": lambda: direct(True),
                "f32 from the kernel": lambda: direct(False),
                "bf16, then converted, split over the tokens": lambda: converted(True),
                "bf16, then converted": lambda: converted(False)}


class FlashAttention3Operators:
    """FlashAttention 3 as its own package names it, or the build of its forward pass alone."""

    def __init__(self, torch):
        self.torch = torch
        self.module = import_first("flash_attn_interface", "flash_attn_3.flash_attn_interface", "fa3_fwd_interface")

    def attention_varlen(self, b, causal=False):
        longest = [int((b[role][1:] - b[role][:-1]).max()) for role in ("cu_q", "cu_k")]
        attend = self.module.flash_attn_varlen_func

        def run():
            result = attend(b["q"], b["k"], b["v"], b["cu_q"], b["cu_k"], *longest, causal=causal)
            return result[0] if isinstance(result, (tuple, list)) else result

        return run

    def attention_varlen_causal(self, b):
        return self.attention_varlen(b, True)

    def attention_even(self, b, causal=False):
        sequences = even_sequences(b["q"], b)
        q, k, v = (b[role].view((sequences, -1) + tuple(b[role].shape[1:])) for role in ("q", "k", "v"))

        def run():
            result = self.module.flash_attn_func(q, k, v, causal=causal)
            return (result[0] if isinstance(result, (tuple, list)) else result).view(b["q"].shape)

        return run

    def attention_even_causal(self, b):
        return self.attention_even(b, True)


OPERATORS = {"torch": TorchOperators, "flashinfer": FlashInferOperators, "fla": FlaOperators,
             "flash_qla": FlashQlaOperators, "fa3": FlashAttention3Operators}


class Subject:
    def __init__(self, torch, runs, outs):
        self.torch = torch
        self.runs = runs  # a function a set
        self.outs = outs  # the outputs' buffers of set 0, in the order of what a run returns
        self.graphs = {}
        for run in runs[:2]:
            run()
        torch.cuda.synchronize()

    def run(self):
        results = self.runs[0]()
        for out, result in zip(self.outs, results if isinstance(results, (tuple, list)) else (results,)):
            if result.data_ptr() != out.data_ptr():
                out.copy_(result.reshape(out.shape))
        self.torch.cuda.synchronize()

    def graph(self, first, repeats):
        key = (first % len(self.runs), repeats)
        if key not in self.graphs:
            if len(self.graphs) >= GRAPHS:
                self.graphs.pop(next(iter(self.graphs)))
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                # Results are kept until the capture ends, so that each run writes to memory of its own.
                kept = [self.runs[(first + i) % len(self.runs)]() for i in range(repeats)]
            del kept
            graph.replay()
            self.torch.cuda.synchronize()
            self.graphs[key] = graph
        return self.graphs[key]

    def time(self, first, repeats):
        graph = self.graph(first, repeats)
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e6 / repeats


class References:
    def __init__(self, provider):
        if provider not in OPERATORS:
            raise Refused(f"there is no provider {provider!r}; expected {', '.join(OPERATORS)}")
        try:
            self.torch = importlib.import_module("torch")
            if not self.torch.cuda.is_available():
                raise Refused("torch sees no CUDA device")
            self.operators = OPERATORS[provider](self.torch)
        except ImportError as problem:
            packages = " or ".join(PACKAGES[provider])
            raise Refused(f"python3 ({sys.executable}) cannot import it: {problem}; its package is {packages}") from problem
        self.provider = provider
        self.memory = None
        self.drop()

    def drop(self):
        self.sets, self.outputs, self.subjects = [], [], []

    def version(self):
        text = f"{self.provider} {package_version(self.provider)}"
        if self.provider != "torch":
            text += f" (torch {self.torch.__version__})"
        cudnn = self.torch.backends.cudnn.version()
        return text + (f" (cudnn {cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100})" if cudnn else "")

    def dtype(self, name):
        names = {"f64": "float64", "f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16",
                 "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16",
                 "i8": "int8", "u8": "uint8"}
        if name not in names:
            raise Refused(f"torch has no type {name}")
        return getattr(self.torch, names[name])

    def raw(self, tensor):
        return self.torch.frombuffer(self.memory, dtype=self.torch.uint8, count=tensor["bytes"], offset=tensor["offset"])

    def begin(self, request):
        self.drop()
        self.memory = mmap.mmap(4, request["memory"])
        self.sets = [{} for _ in range(request["sets"])]
        for tensor in request["tensors"]:
            dtype, shape = self.dtype(tensor["dtype"]), tensor["shape"]
            first = None
            for buffers in self.sets:
                if tensor["role"] == "output":
                    buffers[tensor["name"]] = self.torch.empty(shape, dtype=dtype, device="cuda")
                    continue
                if first is None:
                    first = self.raw(tensor).cuda().view(dtype).view(shape)
                buffers[tensor["name"]] = first if buffers is self.sets[0] else first.clone()
        self.outputs = [tensor for tensor in request["tensors"] if tensor["role"] == "output"]
        self.torch.cuda.synchronize()
        return {}

    def add(self, request):
        call = request["call"]
        make = getattr(self.operators, call["op"], None)
        known = [name for name in dir(self.operators) if name.endswith(OPERATOR_ENDS)]
        if call["op"] not in known:
            raise Refused(f"it has no operator {call['op']!r} here; expected {', '.join(known) or 'none: it has none yet'}")
        with self.torch.no_grad():
            try:
                runs = [make({role: buffers[name] for role, name in call["buffers"].items()}) for buffers in self.sets]
            except KeyError as problem:
                raise Refused(f"the role {problem} names no tensor") from problem
            way = fastest(self.torch, runs[0]) if isinstance(runs[0], dict) else None
            if way is not None:
                runs = [ways[way] for ways in runs]
            self.subjects.append(Subject(self.torch, runs, [self.sets[0][out["name"]] for out in self.outputs]))
        return {"subject": len(self.subjects) - 1, **({"way": way} if way else {})}

    def run(self, request):
        self.subjects[request["subject"]].run()
        for tensor in self.outputs:
            bytes_ = self.sets[0][tensor["name"]].contiguous().view(-1).view(self.torch.uint8)
            self.raw(tensor).copy_(bytes_)
        self.torch.cuda.synchronize()
        return {}

    def time(self, request):
        return {"ns": self.subjects[request["subject"]].time(request["first"], request["repeats"])}

    def end(self, _):
        self.drop()
        self.torch.cuda.empty_cache()
        return {}


def package_version(provider):
    for package in PACKAGES[provider]:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    try:
        return importlib.import_module(provider).__version__
    except (ImportError, AttributeError):
        return "of unknown version"


def serve(provider):
    connection = channel()
    try:
        references = References(provider)
    except Exception as problem:  # whatever an import does wrong is an answer
        send(connection, {"hello": "klineage-reference", "version": VERSION, "error": str(problem) or repr(problem)})
        return
    send(connection, {"hello": "klineage-reference", "version": VERSION, "text": references.version()})
    handlers = {name: getattr(references, name) for name in ("begin", "add", "run", "time", "end")}
    while True:
        request = receive(connection)
        try:
            answer = handlers[request["op"]](request)
            send(connection, {"ok": True, **answer})
        except Exception as problem:
            send(connection, {"error": str(problem) or repr(problem)})


def print_versions():
    found = {}
    for provider, packages in PACKAGES.items():
        for package in reversed(packages):
            try:
                found[provider] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                pass
    print(json.dumps({"python": sys.version.split()[0], "executable": sys.executable, "packages": found}))


if __name__ == "__main__":
    print_versions() if sys.argv[1] == "--versions" else serve(sys.argv[1])
