# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns a Triton candidate into PTX, for the gate.

Runs as `python3 -c <this text>` in a confined process, with a stream socket as descriptor 3. A message is its length (4 bytes, little-endian) and
that many bytes of JSON. It introduces itself, answers one request, and is ended: what a candidate did to it lasts for no other one.

  {"hello": "klineage-triton", "version", "triton": "3.6.0", "python": "3.12.3", "assembler": path of ptxas, "assembler_options": [...]}
      or {"hello", "version", "error": "why there is no Triton"}
  {"source", "name", "arch": 90, "cuda": "12.9", "launches": [{"kernel", "entry", "arguments": [{"type": "*bf16", "multiple_of_16": true}],
   "constants": {"BM": 128}, "num_warps", "num_stages"}]}
      -> {"ok": true, "ptx", "launches": [{"threads", "shared", "scratch", "pointers", "maps": [{"box", "swizzle"}]}]}
      or {"ok": true, "log": "K00.py:7:1: error: what the source did wrong"} or {"error": "what went wrong here"}

Launches with the same entry are the same kernel, compiled once. `constants` are offered; a kernel takes those that it has parameters for.

A candidate is text: its functions are read by Triton, and nothing of it is run but what defines them. So a module may hold imports of Triton,
constants, and functions under @triton.jit; names that lead out of Triton's language are refused before Triton sees them. The confinement of
the process is the wall behind that.
"""
import sys

sys.path = [folder for folder in sys.path if folder]  # nothing is imported from the current folder

import ast
import inspect
import json
import linecache
import os
import platform
import re
import socket
import struct

VERSION = 1
MODULES = ("triton", "triton.language", "triton.language.math", "triton.language.extra", "triton.language.extra.cuda",
           "triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
OF_TRITON = {"jit", "language", "cdiv", "next_power_of_2"}
OF_EXTRA = {"cuda", "libdevice"}
#: members of tensors, types and descriptors beside their methods
MEMBERS = {"shape", "dtype", "type", "T", "element_ty", "scalar", "numel", "value", "strides", "block_shape", "primitive_bitwidth", "itemsize",
           "to", "load", "store", "gather", "scatter"}
REFUSED_NAMES = {"getattr", "hasattr", "setattr", "delattr", "eval", "exec", "compile", "open", "globals", "locals", "vars", "dir", "input",
                 "breakpoint", "type", "super", "object"}
STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Return, ast.Expr, ast.Pass, ast.Assert, ast.Break,
              ast.Continue, ast.With)
EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice,
               ast.Constant, ast.Tuple, ast.List, ast.Starred, ast.keyword, ast.withitem)
AROUND = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
MOST_PTX_BYTES = 48 << 20
OUT_OF_MEMORY = "out of memory"


class Refused(Exception):
    """What a source may not do, and where."""

    def __init__(self, node, text):
        super().__init__(text)
        self.line = getattr(node, "lineno", 1)
        self.column = getattr(node, "col_offset", 0) + 1


class Reading:
    """Looks through a module's text for what is no part of Triton's language."""

    def __init__(self, triton):
        self.triton = triton
        self.modules = {}  # what imports call them -> the module
        language = triton.language
        kinds = [language.tensor, language.constexpr, language.dtype, language.core.tensor_descriptor]
        self.members = MEMBERS | {name for kind in kinds for name in dir(kind) if not name.startswith("_")}

    def module(self, tree):
        for node in tree.body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports(node)
            elif isinstance(node, ast.FunctionDef):
                self.function(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self.constant(node)
            else:
                raise Refused(node, "a Triton candidate is imports of triton, constants and functions under @triton.jit; nothing of it is run")

    def imports(self, node):
        sole = "a Triton candidate imports triton and triton.language, and nothing else"
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name
                if path not in MODULES or ("." in path and not alias.asname):
                    raise Refused(node, sole + (f'; write "import {path} as …"' if path in MODULES else ""))
            else:
                path = f"{node.module}.{alias.name}"
                if node.level or path not in MODULES:
                    raise Refused(node, sole)
            __import__(path)
            self.define(node, alias.asname or alias.name)
            self.modules[alias.asname or alias.name] = sys.modules[path]

    def function(self, node):
        decorator = node.decorator_list[0] if len(node.decorator_list) == 1 else None
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call else decorator
        if not (isinstance(target, ast.Attribute) and target.attr == "jit" and isinstance(target.value, ast.Name)
                and self.modules.get(target.value.id) is self.triton):
            said = ast.unparse(node.decorator_list[0]) if node.decorator_list else ""
            if "autotune" in said or "heuristics" in said:
                raise Refused(node.decorator_list[0], "the gate tunes: declare a [[tunable]] in place of @" + said.split("(")[0])
            raise Refused(node, f"the function {node.name} has to stand under @triton.jit, and under nothing else")
        if call and (call.args or any(not isinstance(word.value, ast.Constant) or word.arg is None for word in call.keywords)):
            raise Refused(call, "@triton.jit takes constants here")
        self.define(node, node.name)
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            raise Refused(node, "parameters are plain names here")
        for parameter in given.args:
            self.define(parameter, parameter.arg)
        for part in [parameter.annotation for parameter in given.args] + list(given.defaults) + [node.returns]:
            if part is not None:
                self.plain(part)
        for statement in node.body:
            self.code(statement)

    def constant(self, node):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if not isinstance(target, ast.Name):
                raise Refused(node, "a constant has a plain name; nothing else can be set here")
            self.define(target, target.id)
        if node.value is not None:
            self.plain(node.value)
        if isinstance(node, ast.AnnAssign):
            self.plain(node.annotation)

    def plain(self, root):
        """Of what Python itself evaluates: literals, names, arithmetic on small numbers, tl.constexpr(…)."""
        for node in ast.walk(root):
            if isinstance(node, ast.Call):
                callee = node.func
                if not (isinstance(callee, ast.Attribute) and callee.attr == "constexpr" and len(node.args) == 1 and not node.keywords):
                    raise Refused(node, "a constant is a literal or tl.constexpr of one")
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, int) and abs(node.value) >= 1 << 64:
                    raise Refused(node, "a whole number has at most 64 bits")
            elif isinstance(node, ast.BinOp):
                if not isinstance(node.op, (ast.Add, ast.Sub, ast.Div, ast.FloorDiv)) and not (
                        isinstance(node.op, ast.Mult) and not any(isinstance(part, (ast.Tuple, ast.List)) or
                                                                  isinstance(getattr(part, "value", None), (str, bytes))
                                                                  for part in (node.left, node.right))):
                    raise Refused(node, "constants are added, subtracted, multiplied and divided")
            elif isinstance(node, (ast.Name, ast.Attribute)):
                self.reach(node)
            elif not isinstance(node, (ast.UnaryOp, ast.Tuple) + AROUND):
                raise Refused(node if hasattr(node, "lineno") else root, "a constant is a literal or tl.constexpr of one")

    def code(self, root):
        for node in ast.walk(root):
            if isinstance(node, (ast.Name, ast.Attribute)):
                self.reach(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, (bytes, complex)):
                raise Refused(node, "a literal of this kind means nothing to Triton")
            elif not isinstance(node, STATEMENTS + EXPRESSIONS + AROUND):
                raise Refused(node if hasattr(node, "lineno") else root,
                              f"{type(node).__name__} is no part of what a Triton candidate may hold")

    @staticmethod
    def name(node, name):
        if name.startswith("__") or name in REFUSED_NAMES:
            raise Refused(node, f"the name {name} is refused: it leads out of Triton's language")

    def define(self, node, name):
        self.name(node, name)
        if name in self.modules:
            raise Refused(node, f"{name} is a module and stays one")

    def reach(self, node):
        if isinstance(node, ast.Name):
            self.name(node, node.id)
            if not isinstance(node.ctx, ast.Load):
                self.define(node, node.id)
            return
        if node.attr.startswith("_"):
            raise Refused(node, f"the name {node.attr} is refused: it leads out of Triton's language")
        if not isinstance(node.ctx, ast.Load):
            raise Refused(node, f"{ast.unparse(node)} cannot be set")
        owner = self.owner(node.value)
        if owner is None:
            if node.attr not in self.members:
                raise Refused(node, f"tensors have no member {node.attr}")
            return
        path = owner.__name__
        known = {"triton": OF_TRITON, "triton.language": set(self.triton.language.__all__),
                 "triton.language.extra": OF_EXTRA}.get(path, {name for name in dir(owner) if not name.startswith("_")})
        found = getattr(owner, node.attr, None)
        if node.attr not in known or found is None or (inspect.ismodule(found) and found.__name__ not in MODULES):
            raise Refused(node, f"{path} offers no {node.attr} to candidates")

    def owner(self, node):
        """The module that an expression names; None: it is none."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.owner(node.value)
            found = getattr(owner, node.attr, None) if owner is not None else None
            return found if inspect.ismodule(found) else None
        return None


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
        tree = ast.parse(source, name)
        Reading(self.triton).module(tree)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)  # where Triton reads a function's text
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
    for piece in pieces:
        own = {number: path for number, path in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', piece, re.MULTILINE)}
        for path in own.values():
            files.setdefault(path, len(files) + 1)
        text = re.sub(r"^\s*\.section\s+\.debug_\w+\s*\{[^}]*\}", "", piece, flags=re.MULTILINE)
        text = re.sub(r"^(\s*\.loc\s+)(\d+)(\s+\d+\s+\d+)[^\n]*", lambda at: f"{at[1]}{files[own[at[2]]]}{at[3]}", text, flags=re.MULTILINE)
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


def words_of(problem):
    """What the innermost exception says, without the excerpts of source that Triton wraps around it."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    text = getattr(problem, "error_message", None) or str(problem) or type(problem).__name__
    shown = re.fullmatch(r"\w+\((['\"])(.*)\1\)", text, re.DOTALL)  # an exception as repr() shows it
    return " ".join((shown.group(2) if shown else text).split())[:1000]


def answer(compiler, request):
    source, name = request["source"], request["name"]

    def failed(line, column, text):
        return {"ok": True, "log": f"{name}:{line}:{column}: error: {text}\n"}

    try:
        functions = compiler.functions(source, name)
    except SyntaxError as problem:
        return failed(problem.lineno or 1, problem.offset or 1, problem.msg)
    except Refused as problem:
        return failed(problem.line, problem.column, str(problem))
    except (RecursionError, ValueError) as problem:
        return failed(1, 1, words_of(problem))
    pieces, known, said = [], {}, []
    for launch in request["launches"]:
        entry = launch["entry"]
        if entry not in known:
            function = functions.get(launch["kernel"])
            if type(function) is not compiler.triton.JITFunction:
                return failed(1, 1, f"there is no function {launch['kernel']} under @triton.jit")
            try:
                ptx, facts = compiler.kernel(function, launch, request["arch"], request["cuda"])
            except MemoryError:
                raise
            except Exception as problem:
                line, column = place_of(problem, source)
                return failed(line or function.starting_line_number, column, f"{launch['kernel']}: {words_of(problem)}")
            ptx = re.sub(r"\b" + re.escape(facts["name"]) + r"(?=_param_\d+\b|\()", entry, ptx)
            pieces.append(ptx)
            known[entry] = (facts, parameters_of(ptx, entry) - expected_parameters(launch))
        facts, pointers = known[entry]
        line = functions[launch["kernel"]].starting_line_number
        if facts["profile_scratch_size"]:
            return failed(line, 1, f"{launch['kernel']}: it asks for memory to profile itself, which is not given")
        if pointers < 1:
            return failed(line, 1, f"{launch['kernel']}: its parameters are not those that the plan passes")
        maps = [{"box": meta["block_size"], "swizzle": meta["swizzle"]} for meta in facts["tensordesc_meta"] or []]
        said.append({"threads": 32 * facts["num_warps"], "shared": facts["shared"], "scratch": facts["global_scratch_size"],
                     "pointers": pointers, "maps": maps})
    ptx = merged(pieces)
    if len(ptx) > MOST_PTX_BYTES:
        return failed(1, 1, "it becomes more than 48 MiB of PTX")
    return {"ok": True, "ptx": ptx, "launches": said}


def send(connection, message):
    data = json.dumps(message).encode()
    connection.sendall(struct.pack("<I", len(data)) + data)


def receive(connection):
    def exactly(count):
        data = b""
        while len(data) < count:
            piece = connection.recv(count - len(data))
            if not piece:
                sys.exit(0)
            data += piece
        return data

    return json.loads(exactly(struct.unpack("<I", exactly(4))[0]))


def serve():
    connection = socket.socket(fileno=3)
    hello = {"hello": "klineage-triton", "version": VERSION}
    try:
        compiler = Compiler()
        hello.update(compiler.hello())
    except Exception as problem:
        send(connection, {**hello, "error": f"{type(problem).__name__}: {problem}"[:500]})
        return
    send(connection, hello)
    request = receive(connection)
    try:
        message = answer(compiler, request)
    except MemoryError:
        print(OUT_OF_MEMORY, file=sys.stderr, flush=True)
        os._exit(1)
    except Exception as problem:
        message = {"error": f"{type(problem).__name__}: {problem}"[:1000]}
    send(connection, message)


if __name__ == "__main__":
    serve()
