# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns a Triton candidate into PTX, for the gate. kernellanguage.py stands before this text.

  hello: {"triton": "3.6.0", "python": "3.12.3", "assembler": path of ptxas, "assembler_options": [...]}
  {"source", "name", "arch": 90, "cuda": "12.9", "launches": [{"kernel", "entry", "arguments": [{"type": "*bf16", "multiple_of_16": true}],
   "constants": {"BM": 128}, "num_warps", "num_stages"}]}
      -> {"ok": true, "ptx", "launches": [{"threads", "shared", "scratch", "pointers", "maps": [{"box", "swizzle"}]}]}

Launches with the same entry are the same kernel, compiled once. `constants` are offered; a kernel takes those that it has parameters for.
Functions are read by Triton, and nothing of the module is run but what defines them.
"""
MODULES = ("triton", "triton.language", "triton.language.math", "triton.language.extra", "triton.language.extra.cuda",
           "triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
OF_TRITON = {"jit", "language", "cdiv", "next_power_of_2"}
OF_EXTRA = {"cuda", "libdevice"}
#: members of tensors, types and descriptors beside their methods
MEMBERS = {"shape", "dtype", "type", "T", "element_ty", "scalar", "numel", "value", "strides", "block_shape", "primitive_bitwidth", "itemsize",
           "to", "load", "store", "gather", "scatter"}
MOST_PTX_BYTES = 48 << 20
#: what a module defines beside its kernel: texts to print, constants of the mathematics, functions that are not inlined
DEFINED = re.compile(r"^\s*(?:\.(?:visible|weak)\s+)*(?:\.(?:global|const)\b[^=;\n]*?([\w$]+)\s*(?:\[[^\]\n]*\]\s*)*[=;]"
                     r"|\.func\s+(?:\([^)]*\)\s*)?([\w$]+))", re.MULTILINE)


class TritonReading(Reading):
    LANGUAGE = "Triton"
    MODULES = MODULES
    IMPORTS = "triton and triton.language"
    FUNCTIONS = "functions under @triton.jit"
    CONSTANT = "a literal or tl.constexpr of one"

    def __init__(self, triton):
        super().__init__()
        self.triton = triton
        language = triton.language
        kinds = [language.tensor, language.constexpr, language.dtype, language.core.tensor_descriptor]
        self.members = MEMBERS | {name for kind in kinds for name in dir(kind) if not name.startswith("_")}

    def function(self, node):
        owner, name, call = self.decorator(node)
        if owner is not self.triton or name != "jit":
            said = ast.unparse(node.decorator_list[0]) if node.decorator_list else ""
            if "autotune" in said or "heuristics" in said:
                raise Refused(node.decorator_list[0], "the gate tunes: declare a [[tunable]] in place of @" + said.split("(")[0])
            raise Refused(node, f"the function {node.name} has to stand under @triton.jit, and under nothing else")
        if call and (call.args or any(not isinstance(word.value, ast.Constant) or word.arg is None for word in call.keywords)):
            raise Refused(call, "@triton.jit takes constants here")
        self.define(node, node.name)
        parameters = self.parameters(node)
        for part in [parameter.annotation for parameter in parameters] + list(node.args.defaults) + [node.returns]:
            if part is not None:
                self.plain(part)
        for statement in node.body:
            self.code(statement)

    def is_constant(self, call):
        return (isinstance(call.func, ast.Attribute) and call.func.attr == "constexpr" and len(call.args) == 1
                and not call.keywords)

    def offered(self, module):
        return {"triton": OF_TRITON, "triton.language": set(self.triton.language.__all__),
                "triton.language.extra": OF_EXTRA}.get(module.__name__, {name for name in dir(module) if not name.startswith("_")})


class Compiler:
    """What Triton's own compile() does, up to PTX: no files, no cache, no programs."""

    def __init__(self):
        import triton
        import triton.backends.nvidia.compiler as nvidia
        import triton.compiler.compiler as compiler
        import triton.language.extra.cuda  # found by kernels as tl.extra.cuda
        from triton.backends.compiler import GPUTarget
        self.triton, self.nvidia, self.compiler, self.target = triton, nvidia, compiler, GPUTarget
        self.folder = os.path.dirname(os.path.abspath(nvidia.__file__))

    def hello(self):
        newer = "regAllocOptLevel" in inspect.getsource(self.nvidia.CUDABackend.make_cubin)
        return {"triton": self.triton.__version__, "python": platform.python_version(),
                "assembler": os.path.join(self.folder, "bin", "ptxas"),
                "assembler_options": ["--regAllocOptLevel=2"] if newer else []}

    def functions(self, source, name):
        tree = parsed(source, name)
        TritonReading(self.triton).module(tree)
        found = {"__name__": "candidate"}
        exec(compile(tree, name, "exec"), found)
        return found

    def kernel(self, function, launch, arch, cuda):
        """The PTX of one launch, and what Triton decided about it."""
        signature, constants, attributes = {}, {}, {}
        given = iter(launch["arguments"])
        for place, parameter in enumerate(function.params):
            if parameter.is_constexpr:
                signature[parameter.name] = "constexpr"
                if parameter.name in launch["constants"]:
                    constants[parameter.name] = launch["constants"][parameter.name]
                elif parameter.has_default:
                    constants[parameter.name] = parameter.default
                else:
                    raise ValueError(f"the constexpr parameter {parameter.name} is no [[tunable]] and has no default")
                continue
            argument = next(given, None)
            if argument is None:
                raise ValueError(f"the plan gives {len(launch['arguments'])} arguments, and none for the parameter {parameter.name}")
            signature[parameter.name] = argument["type"]
            if argument["multiple_of_16"]:
                attributes[(place,)] = [["tt.divisibility", 16]]
        if next(given, None) is not None:
            raise ValueError(f"the plan gives {len(launch['arguments'])} arguments, which are more than its parameters")
        target = self.target("cuda", arch, 32)
        backend = self.compiler.make_backend(target)
        source = self.compiler.ASTSource(function, signature, constants, attributes)
        options = backend.parse_options({"num_warps": launch["num_warps"], "num_stages": launch["num_stages"],
                                         "ptx_version": self.nvidia.ptx_get_version(cuda)})
        ir = self.compiler.ir
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
        stages, facts = {}, {}
        backend.add_stages(stages, options, source.language)
        for stage in ("ttir", "ttgir", "llir", "ptx"):
            module = stages[stage](module, facts)
        return module, facts

    def compile(self, request):
        source, name = request["source"], request["name"]
        functions = self.functions(source, name)
        pieces, known, said = [], {}, []
        for launch in request["launches"]:
            entry = launch["entry"]
            if entry not in known:
                function = functions.get(launch["kernel"])
                if type(function) is not self.triton.JITFunction:
                    raise Failed(1, 1, f"there is no function {launch['kernel']} under @triton.jit")
                try:
                    ptx, facts = self.kernel(function, launch, request["arch"], request["cuda"])
                except MemoryError:
                    raise
                except Exception as problem:
                    line, column = place_of(problem, source)
                    raise Failed(line or function.starting_line_number, column, f"{launch['kernel']}: {words_of(problem)}") from None
                ptx = re.sub(r"\b" + re.escape(facts["name"]) + r"(?=_param_\d+\b|\()", entry, ptx)
                pieces.append(ptx)
                known[entry] = (facts, parameters_of(ptx, entry) - expected_parameters(launch))
            facts, pointers = known[entry]
            line = functions[launch["kernel"]].starting_line_number
            if facts["profile_scratch_size"]:
                raise Failed(line, 1, f"{launch['kernel']}: it asks for memory to profile itself, which is not given")
            if pointers < 1:
                raise Failed(line, 1, f"{launch['kernel']}: its parameters are not those that the plan passes")
            maps = [{"box": meta["block_size"], "swizzle": meta["swizzle"]} for meta in facts["tensordesc_meta"] or []]
            said.append({"threads": 32 * facts["num_warps"], "shared": facts["shared"], "scratch": facts["global_scratch_size"],
                         "pointers": pointers, "maps": maps})
        ptx = merged(pieces)
        if len(ptx) > MOST_PTX_BYTES:
            raise Failed(1, 1, "it becomes more than 48 MiB of PTX")
        return {"ptx": ptx, "launches": said}


def parameters_of(ptx, entry):
    found = re.search(r"\.entry\s+" + re.escape(entry) + r"\s*\((.*?)\)", ptx, re.DOTALL)
    return found.group(1).count(".param") if found else 0


def expected_parameters(launch):
    count = 0
    for argument in launch["arguments"]:
        found = re.fullmatch(r"tensordesc<\w+\[(.*)\]>", argument["type"])
        count += 1 + 2 * (found.group(1).count(",") + 1) if found else 1  # the map, its extents, its strides
    return count


def merged(pieces):
    """Several modules of one kernel each as one: the line tables are kept, the other debug sections are not."""
    if len(pieces) == 1:
        return pieces[0]
    head, bodies, files = [], [], {}
    for number, piece in enumerate(pieces):
        own = {number: path for number, path in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', piece, re.MULTILINE)}
        for path in own.values():
            files.setdefault(path, len(files) + 1)
        text = re.sub(r"^\s*\.section\s+\.debug_\w+\s*\{[^}]*\}", "", piece, flags=re.MULTILINE)
        text = re.sub(r"^(\s*\.loc\s+)(\d+)(\s+\d+\s+\d+)[^\n]*", lambda at: f"{at[1]}{files[own[at[2]]]}{at[3]}", text, flags=re.MULTILINE)
        names = {name for found in DEFINED.findall(text) for name in found if name}
        if number and names:  # modules name these alike
            known = "|".join(re.escape(name) for name in names)
            text = re.sub(rf"(?<![\w$%.])({known})(?![\w$])", rf"\1$${number}", text)
        kept = []
        for line in text.splitlines():
            word = line.strip()
            if word.startswith((".version", ".target", ".address_size", ".extern .shared")):
                if word not in head:
                    head.append(word)
            elif not word.startswith((".file", "//")):
                kept.append(line)
        bodies.append("\n".join(kept))
    return "\n".join(head + bodies + [f'\t.file\t{number} "{path}"' for path, number in files.items()]) + "\n"


def place_of(problem, source):
    """The line and column of an exception in the candidate: of the innermost function of its own that Triton names."""
    place = (0, 1)
    while problem is not None:
        node, text = getattr(problem, "node", None), getattr(problem, "src", None)
        if node is not None and isinstance(text, str) and hasattr(node, "lineno"):
            begin = source.find(text.strip())
            if begin >= 0:
                place = (source.count("\n", 0, begin) + node.lineno, getattr(node, "col_offset", 0) + 1)
        problem = problem.__cause__
    return place


if __name__ == "__main__":
    serve("triton", Compiler)
