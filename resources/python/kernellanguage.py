# SPDX-License-Identifier: GPL-3.0-or-later
"""What the compilers of kernel languages in Python have in common. messages.py stands before this text, and a language's own behind it.

Runs in a confined process. It introduces itself, answers one request, and is ended: what a candidate did to it lasts for no other one.

  {"hello": "klineage-LANGUAGE", "version", …} or {"hello", "version", "error": "why the language is not there"}
  {"source", "name", "launches": [{"kernel", "entry", "arguments": [{"type": "*bf16", …}], "constants": {"BM": 128}, …}], …}
      -> {"ok": true, "launches": […], …}
      or {"ok": true, "log": "K00.py:7:1: error: what the source did wrong"} or {"error": "what went wrong here"}

A candidate is text: a module of imports of its language, constants, and functions under the language's decorators. Names that lead out of
the language are refused before it sees them. The confinement of the process is the wall behind that.
"""
import ast
import inspect
import linecache
import os
import platform
import re

REFUSED_NAMES = {"getattr", "hasattr", "setattr", "delattr", "eval", "exec", "compile", "open", "globals", "locals", "vars", "dir", "input",
                 "breakpoint", "type", "super", "object"}
STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Return, ast.Expr, ast.Pass, ast.Assert, ast.Break,
              ast.Continue, ast.With)
EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice,
               ast.Constant, ast.Tuple, ast.List, ast.Starred, ast.keyword, ast.withitem)
AROUND = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
OUT_OF_MEMORY = "out of memory"


class Refused(Exception):
    """What a source may not do, and where."""

    def __init__(self, node, text):
        super().__init__(text)
        self.line = getattr(node, "lineno", 1)
        self.column = getattr(node, "col_offset", 0) + 1


class Reading:
    """Looks through a module's text for what is no part of the language. A language's own derives from it."""

    LANGUAGE = ""  # "Triton"
    MODULES = ()  # that may be imported
    IMPORTS = ""  # the same, for people
    FUNCTIONS = ""  # "functions under @triton.jit"
    CONSTANT = ""  # what a constant may be, for people
    members = frozenset()  # of what is no module

    def __init__(self):
        self.modules = {}  # what imports call them -> the module

    def function(self, node):
        raise NotImplementedError

    def is_constant(self, call):
        """Whether a constant may be what this call gives."""
        raise NotImplementedError

    def offered(self, module):
        """The names of a module that candidates may use."""
        raise NotImplementedError

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
                raise Refused(node, f"a {self.LANGUAGE} candidate is imports of {self.MODULES[0]}, constants and {self.FUNCTIONS}; nothing of it is run")

    def imports(self, node):
        sole = f"a {self.LANGUAGE} candidate imports {self.IMPORTS}, and nothing else"
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name
                if path not in self.MODULES or ("." in path and not alias.asname):
                    raise Refused(node, sole + (f'; write "import {path} as …"' if path in self.MODULES else ""))
            else:
                path = f"{node.module}.{alias.name}"
                if node.level or path not in self.MODULES:
                    raise Refused(node, sole)
            __import__(path)
            self.define(node, alias.asname or alias.name)
            self.modules[alias.asname or alias.name] = sys.modules[path]

    def decorator(self, node):
        """The one that a function stands under: the module that has it and its name, and the call, if it is one."""
        decorator = node.decorator_list[0] if len(node.decorator_list) == 1 else None
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call else decorator
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            return self.modules.get(target.value.id), target.attr, call
        return None, "", call

    def parameters(self, node):
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            raise Refused(node, "parameters are plain names here")
        for parameter in given.args:
            self.define(parameter, parameter.arg)
        return given.args

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
        """Of what Python itself evaluates: literals, names, arithmetic on small numbers, the calls that give constants."""
        for node in ast.walk(root):
            if isinstance(node, ast.Call):
                if not self.is_constant(node):
                    raise Refused(node, f"a constant is {self.CONSTANT}")
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
                raise Refused(node if hasattr(node, "lineno") else root, f"a constant is {self.CONSTANT}")

    def code(self, root):
        for node in ast.walk(root):
            if isinstance(node, (ast.Name, ast.Attribute)):
                self.reach(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, (bytes, complex)):
                raise Refused(node, f"a literal of this kind means nothing to {self.LANGUAGE}")
            elif not isinstance(node, STATEMENTS + EXPRESSIONS + AROUND):
                raise Refused(node if hasattr(node, "lineno") else root,
                              f"{type(node).__name__} is no part of what a {self.LANGUAGE} candidate may hold")

    def name(self, node, name):
        if name.startswith("__") or name in REFUSED_NAMES:
            raise Refused(node, f"the name {name} is refused: it leads out of {self.LANGUAGE}'s language")

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
            raise Refused(node, f"the name {node.attr} is refused: it leads out of {self.LANGUAGE}'s language")
        if not isinstance(node.ctx, ast.Load):
            raise Refused(node, f"{ast.unparse(node)} cannot be set")
        owner = self.owner(node.value)
        if owner is None:
            if node.attr not in self.members:
                raise Refused(node, f"tensors have no member {node.attr}")
            return
        found = getattr(owner, node.attr, None)
        if node.attr not in self.offered(owner) or found is None or (inspect.ismodule(found) and found.__name__ not in self.MODULES):
            raise Refused(node, f"{owner.__name__} offers no {node.attr} to candidates")

    def owner(self, node):
        """The module that an expression names; None: it is none."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.owner(node.value)
            found = getattr(owner, node.attr, None) if owner is not None else None
            return found if inspect.ismodule(found) else None
        return None


def words_of(problem):
    """What the innermost exception says, without the excerpts of source that compilers wrap around it."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    text = getattr(problem, "error_message", None) or str(problem) or type(problem).__name__
    shown = re.fullmatch(r"\w+\((['\"])(.*)\1\)", text, re.DOTALL)  # an exception as repr() shows it
    return " ".join((shown.group(2) if shown else text).split())[:1000]


class Failed(Exception):
    """Why a source does not become a program, and where."""

    def __init__(self, line, column, text):
        super().__init__(text)
        self.line, self.column = line, column


def parsed(source, name):
    """The module's tree; the source is where the language reads its functions' texts."""
    tree = ast.parse(source, name)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return tree


def answer(compiler, request):
    """The compiler's reply; what the source did wrong is a log."""
    try:
        return {"ok": True, **compiler.compile(request)}
    except SyntaxError as problem:
        line, column, text = problem.lineno or 1, problem.offset or 1, problem.msg
    except (Refused, Failed) as problem:
        line, column, text = problem.line, problem.column, str(problem)
    except (RecursionError, ValueError) as problem:
        line, column, text = 1, 1, words_of(problem)
    return {"ok": True, "log": f"{request['name']}:{line}:{column}: error: {text}\n"}


def serve(language, make):
    """make: gives the compiler, which has hello() and compile(request)."""
    connection = channel()
    hello = {"hello": f"klineage-{language}", "version": VERSION}
    try:
        compiler = make()
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
