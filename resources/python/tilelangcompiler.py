# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns a TileLang candidate into CUDA C++, for the gate. kernellanguage.py stands before this text.

  hello: {"tilelang": "0.1.15", "python": "3.12.3"}
  {"source", "name", "target": "sm_90a", "launches": [{"kernel", "entry", "arguments": [{"type": "*bf16"}, {"type": "i32", "value": "M * 2"}],
   "constants": {"BM": 128}}]}
      -> {"ok": true, "cuda", "headers": {"tl_templates/cuda/reduce.h": text}, "launches": [{"threads", "shared", "scratch": 0, "pointers": 0,
          "takes": [0, 2, -1], "maps": [{"argument", "dims": ["M", "K"], "strides": ["K"], "box", "swizzle", "promotion", "fill"}]}]}

The plan's first arguments are the parameters of the @T.prim_func, in their order. Behind them come scalars that are the values of its shape
variables, each under the variable's own name: "int M" for T.dynamic("M"). `takes` is what the kernel's own parameters are: an argument's place
in the plan, or -1 - n for the map n. Extents and strides of maps are expressions of the plan's, outermost first, strides in elements.

TileLang runs a @T.prim_func to read it. So names are those of the module, of the tunables and a few of Python's, modules offer a list, and the
text is run with nothing else in reach. No program is started: TileLang writes CUDA C++, and the headers that it needs go with it by name.
"""
import importlib.abc
import importlib.machinery
import types

BUILTINS = {"range": range, "len": len, "min": min, "max": max, "abs": abs, "int": int, "float": float, "bool": bool, "tuple": tuple,
            "True": True, "False": False, "None": None}
FLOATS = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}
MEMBERS = {"shape", "dtype", "strides", "Square", "FullRow", "FullCol"}
#: what T.Kernel and others take, and leads to code or launches that the gate knows nothing of
REFUSED_WORDS = {"prelude", "cluster_dims", "is_cpu"}
TYPES = re.compile(r"(b?float|tfloat|int|uint)\d+(_e\dm\d(fn)?)?(x\d+)?|bool")
OFFERED = set("""
    prim_func macro Kernel Tensor StridedTensor dynamic symbolic GemmWarpPolicy
    Parallel Pipelined Persistent Serial Unroll Vectorized serial parallel unroll vectorized grid loop_break break_loop continue_loop thread_return
    alloc_shared alloc_fragment alloc_local alloc_var alloc_barrier alloc_reducer
    copy async_copy tma_copy fill clear gemm wgmma_gemm wait_wgmma transpose view reshape
    reduce reduce_max reduce_min reduce_sum reduce_abssum reduce_absmax reduce_bitand reduce_bitor reduce_bitxor cummax cumsum finalize_reducer
    reducer_init reducer_update warp_reduce_max warp_reduce_min warp_reduce_sum warp_reduce_bitand warp_reduce_bitor
    if_then_else where cast reinterpret ceildiv cdiv floordiv floormod truncdiv truncmod align_up min max clamp infinity max_value min_value
    abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp10 exp2 fabs floor fma fmod hypot isfinite isinf isnan ldexp log
    log10 log1p log2 nearbyint nextafter pow round rsqrt sigmoid sin sinh sqrt tan tanh trunc fast_rcp
    ieee_add ieee_fdiv ieee_fmaf ieee_frcp ieee_frsqrt ieee_fsqrt ieee_mul ieee_sub abs2 add2 fma2 max2 min2 mul2 sub2 dp4a
    bitwise_and bitwise_not bitwise_or bitwise_xor shift_left shift_right popcount clz all_of any_of
    atomic_add atomic_addx2 atomic_addx4 atomic_load atomic_max atomic_min atomic_or atomic_store
    annotate_safe_value annotate_l2_hit_ratio annotate_restrict_buffers annotate_min_blocks_per_sm use_swizzle assume likely
    get_thread_binding get_thread_bindings get_thread_extent get_thread_extents get_block_binding get_block_bindings get_block_extent
    get_block_extents get_lane_idx get_warp_idx get_warp_idx_sync get_warp_group_idx shuffle_elect ws
    sync_threads sync_warp sync_grid syncthreads_and syncthreads_count syncthreads_or pdl_sync pdl_trigger
    activemask all_sync any_sync ballot ballot_sync match_all_sync match_any_sync shfl_down shfl_sync shfl_up shfl_xor
    barrier_arrive barrier_wait mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx mbarrier_wait_parity cp_async_barrier_noinc
    ptx_commit_group ptx_wait_group fence_proxy_async tma_store_arrive tma_store_wait set_max_nreg inc_max_nreg dec_max_nreg no_set_max_nreg
    warpgroup_arrive warpgroup_commit_batch warpgroup_fence_operand warpgroup_wait disable_warp_group_reg_alloc
    annotate_producer_reg_dealloc annotate_consumer_reg_alloc device_assert print rng_init rng_rand rng_rand_float
""".split())
MOST_TEXT_BYTES = 48 << 20
INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)([<"])([^>"\n]+)[>"]', re.MULTILINE)


class Nothing(type):
    """Stands for whatever of PyTorch TileLang names while it is imported, and asks for nothing while it lowers."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Nothing(name, (cls,), {})
        setattr(cls, name, made)
        return made

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class InPlaceOfTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """PyTorch is large, slow to import, and no part of lowering."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch" else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__version__ = "0"
        none = Nothing("torch", (), {"__init__": lambda self, *args, **words: None})
        module.__getattr__ = lambda name: getattr(none, name)
        return module

    def exec_module(self, module):
        pass


class TilelangReading(Reading):
    LANGUAGE = "TileLang"
    MODULES = ("tilelang", "tilelang.language")
    IMPORTS = "tilelang and tilelang.language"
    FUNCTIONS = "functions under @T.prim_func or @T.macro"
    CONSTANT = 'a literal, a type of T, T.dynamic("NAME") or T.ceildiv of constants'

    def __init__(self, language, tunables):
        super().__init__()
        self.language = language
        self.tunables = tunables
        self.members = MEMBERS
        self.known = set(BUILTINS) | set(tunables)

    def define(self, node, name):
        super().define(node, name)
        if name in self.tunables:
            raise Refused(node, f"{name} is a tunable of the plan and stays one")
        self.known.add(name)

    def function(self, node):
        owner, name, call = self.decorator(node)
        if owner is not self.language or name not in ("prim_func", "macro") or call:
            raise Refused(node, f"the function {node.name} has to stand under @T.prim_func or @T.macro, and under nothing else")
        self.define(node, node.name)
        outside = set(self.known)
        for parameter in self.parameters(node):
            if parameter.annotation is not None:
                self.code(parameter.annotation)
            elif name == "prim_func":
                raise Refused(parameter, f"the parameter {parameter.arg} does not say what it is: a T.Tensor or a type of T")
        for default in node.args.defaults:
            self.plain(default)
        if node.returns is not None:
            raise Refused(node.returns, "a function says nothing of what it returns here")
        for inner in ast.walk(node):  # a loop's names are known in front of it
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.define(inner, inner.id)
        for statement in node.body:
            self.code(statement)
        self.known = outside

    def code(self, root):
        super().code(root)
        for node in ast.walk(root):
            if isinstance(node, ast.Pow):
                raise Refused(root, "powers are T.pow here")
            if isinstance(node, ast.Attribute) and node.attr in ("prim_func", "macro"):
                raise Refused(node, f"T.{node.attr} stands above functions, and nowhere else")
            if isinstance(node, ast.keyword) and (node.arg is None or node.arg in REFUSED_WORDS):
                raise Refused(node, f"{node.arg or 'a dictionary of arguments'} is not for candidates to give")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("dynamic", "symbolic"):
                self.variable(node)

    def variable(self, call):
        given = [*call.args, *(word.value for word in call.keywords)]
        if not given or not all(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier() for part in given):
            raise Refused(call, 'a shape variable is one name: T.dynamic("M")')

    def is_constant(self, call):
        if not isinstance(call.func, ast.Attribute) or self.owner(call.func.value) is not self.language:
            return False
        if call.func.attr in ("dynamic", "symbolic"):
            self.variable(call)
            return True
        return call.func.attr in ("ceildiv", "cdiv", "align_up")

    def offered(self, module):
        if module.__name__ == "tilelang":
            return {"language"}
        return OFFERED | {name for name in dir(module) if TYPES.fullmatch(name)}

    def reach(self, node):
        super().reach(node)
        if isinstance(node, ast.Name) and node.id not in self.known and node.id not in self.modules:
            raise Refused(node, f"{node.id} is neither of this module nor one of the plan's tunables")


class Headers:
    """The texts that a source includes of the package, each under the name that it is included by everywhere."""

    def __init__(self, folders):
        self.folders, self.texts = folders, {}

    def of(self, text, name=""):
        def whole(at):
            names = [at[3]] if at[2] == "<" or not name else [os.path.normpath(os.path.join(os.path.dirname(name), at[3])), at[3]]
            for one in names:
                if self.has(one):
                    return f"{at[1]}<{one}>"
            return at[0]

        return INCLUDE.sub(whole, text)

    def has(self, name):
        if name in self.texts:
            return True
        if os.path.isabs(name) or ".." in name.split("/"):
            return False
        for folder in self.folders:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                self.texts[name] = ""  # it may include itself
                self.texts[name] = self.of(text, name)
                return True
        return False


class Compiler:
    def __init__(self):
        os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
        sys.meta_path.insert(0, InPlaceOfTorch())
        import tilelang
        import tilelang.language
        from tvm import arith, tirx, transform
        from tvm.target import Target
        self.tilelang, self.language, self.tirx, self.arith = tilelang, tilelang.language, tirx, arith
        self.transform, self.target = transform, Target
        self.folder = os.path.dirname(os.path.abspath(tilelang.__file__))

    def hello(self):
        return {"tilelang": self.tilelang.__version__, "python": platform.python_version()}

    def functions(self, source, name, tunables):
        """The module's names. TileLang reads each function while it is defined."""
        tree = parsed(source, name)
        reading = TilelangReading(self.language, tunables)
        reading.module(tree)
        tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
        found = {"__name__": "candidate", "__builtins__": dict(BUILTINS), **reading.modules, **tunables}
        try:
            exec(compile(tree, name, "exec"), found)
        except MemoryError:
            raise
        except Exception as problem:
            raise Failed(line_of(problem, name), 1, words_of(problem)) from None
        lines = {node.name: node.lineno for node in tree.body if isinstance(node, ast.FunctionDef)}
        return found, lines

    def compile(self, request):
        source, name = request["source"], request["name"]
        launches = request["launches"]
        functions, lines = self.functions(source, name, launches[0]["constants"] if launches else {})
        texts, lowered, said = [], {}, []
        for launch in launches:
            kernel = launch["kernel"]
            function = functions.get(kernel)
            if kernel not in lines or not isinstance(function, self.tirx.PrimFunc):
                raise Failed(1, 1, f"there is no function {kernel} under @T.prim_func")
            try:
                if kernel not in lowered:
                    lowered[kernel] = self.lower(function, kernel, request["target"])
                    texts.append(lowered[kernel]["text"])
                said.append(self.launch(function, lowered[kernel], launch["arguments"]))
            except MemoryError:
                raise
            except Exception as problem:
                raise Failed(line_of(problem, name) if lines[kernel] <= line_of(problem, name) else lines[kernel], 1,
                             f"{kernel}: {words_of(problem)}") from None
        headers = Headers([os.path.join(self.folder, "src"), os.path.join(self.folder, "3rdparty", "cutlass", "include")])
        text = headers.of("#include <tl_templates/cuda/nvrtc_std.h>\n" + self.with_lines("\n".join(texts), name))
        if len(text) + sum(map(len, headers.texts.values())) > MOST_TEXT_BYTES:
            raise Failed(1, 1, "it becomes more than 48 MiB of CUDA C++")
        return {"cuda": text, "headers": headers.texts, "launches": said}

    def lower(self, function, kernel, target):
        """The kernel's text and what TileLang decided about it."""
        cuda = self.target({"kind": "cuda", "arch": target.replace("compute_", "sm_")})
        with self.transform.PassContext(opt_level=3, config={"tl.emit_line_directives": True}), cuda:
            made = self.tilelang.lower(function, target=cuda, target_host="c")
        kernels = list(made.device_mod.functions.values())
        if len(kernels) != 1:
            raise ValueError(f"it is {len(kernels)} kernels; a launch of the plan is one T.Kernel")
        attributes = kernels[0].attrs
        extents = attributes["thread_extent"]
        sizes = [int(extents[axis]) for axis in ("threadIdx.x", "threadIdx.y", "threadIdx.z") if axis in extents]
        if not sizes or any(size != 1 for size in sizes[1:]):
            raise ValueError("its threads are not a plain number: a block of the plan's is one row of threads")
        if any(str(axis).startswith("cluster") for axis in extents.keys()):
            raise ValueError("its blocks form clusters, which the plan knows nothing of")
        descriptors = {}
        for host in made.host_mod.functions.values():
            for variable, parts in ((host.attrs or {}).get("tma_descriptor_args") or {}).items():
                descriptors[variable.name] = list(parts)
        shared = attributes["dyn_shared_memory_buf"] if "dyn_shared_memory_buf" in attributes else 0
        text = re.sub(r"\b" + re.escape(str(attributes["global_symbol"])) + r"\b", kernel, made.kernel_source)
        return {"text": text, "threads": sizes[0], "shared": int(shared), "descriptors": descriptors,
                "parameters": [(parameter.name, str(parameter.dtype)) for parameter in kernels[0].params]}

    def launch(self, function, lowered, arguments):
        buffers, scalars = self.bound(function, arguments)
        maps, takes = [], []
        for name, dtype in lowered["parameters"]:
            if name in lowered["descriptors"]:
                takes.append(-1 - len(maps))
                maps.append(self.map(lowered["descriptors"][name], buffers, scalars, arguments))
            elif dtype == "handle" and name in buffers:
                takes.append(buffers[name][0])
            elif dtype != "handle" and name in scalars:
                takes.append(scalars[name])
            else:
                raise ValueError(f"it takes {name}, which the plan does not pass: for a shape variable, \"int {name}\" behind the parameters")
        return {"threads": lowered["threads"], "shared": lowered["shared"], "scratch": 0, "pointers": 0, "takes": takes, "maps": maps}

    def bound(self, function, arguments):
        """By the name that the kernel has for it, a buffer's place in the plan and the buffer, and a scalar's place."""
        buffers, scalars, count = {}, {}, len(function.params)
        if len(arguments) < count:
            raise ValueError(f"the plan gives {len(arguments)} arguments, and the function has {count} parameters")
        for place, parameter in enumerate(function.params):
            given = arguments[place]["type"]
            if given.startswith("tensordesc"):
                raise ValueError("TileLang makes tensor maps itself: pass the tensor in place of the plan's map")
            if parameter in function.buffer_map:
                buffer = function.buffer_map[parameter]
                name, dtype, pointer = buffer.data.name, str(buffer.dtype), True
                buffers[name] = (place, buffer)
            else:
                name, dtype, pointer = parameter.name, str(parameter.dtype), False
                scalars[name] = place
            wanted = type_of(given)
            if pointer != given.startswith("*") or dtype.replace("e4m3fn", "e4m3") != wanted.replace("e4m3fn", "e4m3"):
                raise ValueError(f"the parameter {name} is {'a tensor of ' if pointer else ''}{dtype}, and the plan passes "
                                 f"{'a tensor of ' if given.startswith('*') else ''}{wanted}")
        for place in range(count, len(arguments)):
            name = arguments[place].get("value", "")
            if not name.isidentifier() or name in scalars:
                raise ValueError(f"argument {place + 1} of the plan is behind the function's {count} parameters and is no shape variable's value: "
                                 'write "int M" for T.dynamic("M")')
            scalars[name] = place
        return buffers, scalars

    def map(self, parts, buffers, scalars, arguments):
        """What TileLang would have the driver encode: kind, map, type, rank, address, extents, strides in bytes, box, steps, four words."""
        rank = int(parts[3])
        numbers = parts[5:]
        if getattr(parts[0], "value", parts[0]) != "__tvm_tensormap_create_tiled" or len(numbers) != 4 * rank + 4:
            raise ValueError("it wants a tensor map of another kind than tiles")
        place, buffer = buffers[parts[4].name]
        bytes_each = int(buffer.dtype.bits) // 8

        def outermost_first(first, count):
            return list(reversed(numbers[first:first + count]))

        if any(int(step) != 1 for step in outermost_first(3 * rank, rank)) or int(numbers[4 * rank]) != 0:
            raise ValueError("it wants a tensor map with gaps, which the plan cannot make")
        values = {name: arguments[at]["value"] for name, at in scalars.items()}
        simplify = self.arith.Analyzer().simplify
        strides = [simplify(self.tirx.floordiv(stride, self.tirx.IntImm(str(stride.dtype), bytes_each)))
                   for stride in outermost_first(rank + 1, rank - 1)]
        return {"argument": place, "dims": [self.words(extent, values) for extent in outermost_first(0, rank)],
                "strides": [self.words(stride, values) for stride in strides], "box": [int(extent) for extent in outermost_first(2 * rank, rank)],
                "swizzle": int(numbers[4 * rank + 1]), "promotion": int(numbers[4 * rank + 2]), "fill": int(numbers[4 * rank + 3])}

    def words(self, expression, values):
        """As the plan writes it."""
        tirx = self.tirx
        if isinstance(expression, (int, tirx.IntImm)):
            return str(int(expression))
        if isinstance(expression, tirx.Var) and expression.name in values:
            return f"({values[expression.name]})"
        if isinstance(expression, tirx.Cast):
            return self.words(expression.value, values)
        for kind, form in ((tirx.Add, "({} + {})"), (tirx.Sub, "({} - {})"), (tirx.Mul, "({} * {})"), (tirx.FloorDiv, "({} / {})"),
                           (tirx.FloorMod, "({} % {})"), (tirx.Min, "min({}, {})"), (tirx.Max, "max({}, {})")):
            if isinstance(expression, kind):
                return form.format(self.words(expression.a, values), self.words(expression.b, values))
        raise ValueError(f"a tensor map depends on {expression}, which the plan does not pass: for a shape variable, \"int NAME\" behind the parameters")

    def with_lines(self, text, name):
        """Lines of the candidate under its name, those of TileLang's own macros under the package's."""
        here = os.path.join(os.getcwd(), name)
        text = re.sub(r'^(#line \d+ )"' + re.escape(here) + '"', lambda at: f'{at[1]}"{name}"', text, flags=re.MULTILINE)
        return text.replace(f'"{self.folder}/', '"tilelang/')


def type_of(given):
    """ "*bf16" -> "bfloat16", "i32" -> "int32" """
    given = given.lstrip("*")
    return FLOATS.get(given) or {"i": "int", "u": "uint"}[given[0]] + given[1:]


def line_of(problem, name):
    """The line of the candidate that an exception came through last; 0: through none."""
    line = 0
    while problem is not None:
        step = problem.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == name:
                line = step.tb_lineno
            step = step.tb_next
        problem = problem.__cause__
    return line


if __name__ == "__main__":
    serve("tilelang", Compiler)
