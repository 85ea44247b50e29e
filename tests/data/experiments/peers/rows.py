# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels over the rows of a matrix, as a family: softmax, rmsnorm and layernorm in OpenCL C and CUDA C++."""

LOG2E = "1.44269504f"


class Words:
    """What the two languages spell differently. An element is `a`, in a vector loop a whole vector (OpenCL) or one of its parts (CUDA)."""

    def __init__(self, surface, genes):
        self.cuda = surface == "cuda"
        self.g = genes
        self.v = int(genes["v"])
        self.lanes = {"item": 1, "warp": 32}.get(genes["who"], int(genes["lanes"]))
        self.vec = "float" if self.v == 1 else f"float{self.v}"
        self.double = genes["sum"] == "double"
        self.accumulator = "double" if self.double else "float"

    def call(self, name):
        return name + "f" if self.cuda else name

    def exp(self, x, top, scalar):
        kind = self.g.get("exp", "exp")
        z = f"{x} - {top}"
        if kind == "native":
            return f"__expf({z})" if self.cuda else f"native_exp({z})"
        if kind == "exp2":
            return f"{self.call('exp2')}(({z}) * {LOG2E})"
        if kind == "fold":
            shift = f"-({top}) * {LOG2E}"
            if self.cuda or scalar or self.v == 1:
                return f"{self.call('exp2')}({self.call('fma')}({x}, {LOG2E}, {shift}))"
            return f"exp2(fma({x}, (vec){LOG2E}, (vec)({shift})))"
        return f"{self.call('exp')}({z})"

    def wide(self, x, scalar):
        """As what is added up."""
        if not self.double or self.cuda:
            return x
        return f"(double)({x})" if scalar or self.v == 1 else f"convert_double{self.v}({x})"

    def load(self, pointer):
        if self.cuda:
            read = f"*reinterpret_cast<const {self.vec} *>({pointer})"
            return f"__ldcs(reinterpret_cast<const {self.vec} *>({pointer}))" if self.g["stream"] == "1" else read
        return f"*({pointer})" if self.v == 1 else f"vload{self.v}(0, {pointer})"

    def store(self, value, pointer):
        if self.cuda:
            if self.g["stream"] == "1":
                return f"__stcs(reinterpret_cast<{self.vec} *>({pointer}), {value});"
            return f"*reinterpret_cast<{self.vec} *>({pointer}) = {value};"
        return f"*({pointer}) = {value};" if self.v == 1 else f"vstore{self.v}({value}, 0, {pointer});"


class Rows:
    def __init__(self, op, surface, genes, slips):
        self.op, self.g, self.slips = op, genes, slips
        self.w = Words(surface, genes)
        self.hold = int(genes["hold"])
        self.out = []
        self.held = False

    def add(self, *lines):
        self.out += lines

    def step(self):
        return f"{self.w.lanes} * {self.w.v}" if self.w.lanes > 1 else str(self.w.v)

    def each(self, statement, indent):
        """The statement for the parts of a vector."""
        w = self.w
        if not w.cuda:
            return [indent + statement(False).replace("$a", "a").replace("$i", "")]
        text = statement(True).replace("$a", "p.e[j]").replace("$i", "[j]")
        return [indent + f"for (int j = 0; j < {w.v}; ++j)", indent + "    " + text]

    def walk(self, statement, source="x", first=False, stores=False, keeps=False):
        """One pass over the row. `keeps`: what the statement makes of the element replaces it for the passes that follow."""
        w, pack = self.w, ("Pack" if self.w.cuda else "vec")
        part = ".v" if w.cuda else ""
        name = "p" if w.cuda else "a"
        lane = "lane" if w.lanes > 1 else "0"
        prefetch = []
        if stores and self.g.get("stream") == "1" and not w.cuda:
            prefetch = ["        __builtin_prefetch(x + C + c);"]
        extra = []
        for tensor in {"rmsnorm": ["gamma"], "layernorm": ["gamma", "beta"]}.get(self.op, []) if stores else []:
            short = tensor[0]
            extra.append(f"        const {pack} {short}{'' if w.cuda else ' = ' + w.load(tensor + ' + c')};")
            if w.cuda:
                extra[-1] = f"        Pack {short}; {short}.v = *reinterpret_cast<const {w.vec} *>({tensor} + c);"
        body = self.each(statement, "        ")
        save = ["        " + w.store(name + part, "y + c")] if stores else []
        keep = ["        " + w.store(name + part, "y + c")] if keeps else []
        if self.hold:
            if first:
                self.add(f"    {pack} held[{self.hold}];")
            self.add("#pragma unroll", f"    for (int i = 0; i < {self.hold}; ++i) {{",
                     f"        const int c = i * {self.step()} + {lane} * {w.v};" if w.lanes > 1 else
                     f"        const int c = i * {w.v};",
                     "        if (c >= full)", "            break;" if not w.cuda else "            continue;")
            if first:
                self.add(f"        {pack} {name};" if w.cuda else f"        vec a = {w.load('x + c')};")
                if w.cuda:
                    self.add(f"        p.v = {w.load('x + c')};")
            else:
                self.add(f"        {pack} {name} = held[i];")
            self.add(*extra, *body, *save)
            if first or keeps:
                self.add(f"        held[i] = {name};")
            self.add("    }")
        begin = f"{lane} * {w.v}" if w.lanes > 1 else "0"
        if self.hold:
            begin = f"{self.hold} * {self.step()} + " + begin if w.lanes > 1 else f"{self.hold} * {w.v}"
        if self.g["unroll"] != "1":
            self.add(f"#pragma unroll {self.g['unroll']}")
        end = "full - 1" if "short" in self.slips else "full"
        self.add(f"    for (int c = {begin}; c < {end}; c += {self.step()}) {{", *prefetch)
        if w.cuda:
            self.add("        Pack p;", f"        p.v = {w.load(source + ' + c')};")
        else:
            self.add(f"        vec a = {w.load(source + ' + c')};")
        self.add(*extra, *body, *save, *keep, "    }")
        if w.v > 1 and "tail" not in self.slips:
            self.add(f"    for (int c = full{' + lane' if w.lanes > 1 else ''}; c < C; c += {w.lanes}) {{",
                     f"        float a = {source}[c];")
            for tensor in {"rmsnorm": ["gamma"], "layernorm": ["gamma", "beta"]}.get(self.op, []) if stores else []:
                self.add(f"        const float {tensor[0]} = {tensor}[c];")
            text = statement(True).replace("$a", "a").replace("$i", "")
            for old, new in (("m", "mt"), ("s", "st"), ("q", "qt")):
                text = text.replace(f"${old}", new)
            self.add("        " + text.replace("g.e[j]", "g").replace("b.e[j]", "b"))
            if stores or keeps:
                self.add("        y[c] = a;")
            self.add("    }")
        # in the vector loops the accumulators are those of the parts
        self.out = [line.replace("$m", "m").replace("$s", "s").replace("$q", "q") for line in self.out]

    def accumulators(self, names):
        w = self.w
        for name, kind, value in names:
            if w.cuda:
                self.add(f"    {kind} {name}[{w.v}];", f"    for (int j = 0; j < {w.v}; ++j)", f"        {name}[j] = {value};")
            else:
                vector = kind if w.v == 1 else f"{kind}{w.v}"
                self.add(f"    {vector} {name} = {value};")
            if w.v > 1:
                self.add(f"    {kind} {name}t = {value};")

    def total(self, name, how="+"):
        """Over the parts of the vector and the tail."""
        w = self.w
        parts = [name] if w.v == 1 and not w.cuda else []
        if w.cuda:
            parts = [f"{name}[{i}]" for i in range(w.v)]
        elif w.v > 1:
            parts = [f"{name}.s{'0123456789abcdef'[i]}" for i in range(w.v)]
        parts += [f"{name}t"] if w.v > 1 else []
        while len(parts) > 1:
            pairs = [parts[i:i + 2] for i in range(0, len(parts), 2)]
            parts = [pair[0] if len(pair) == 1 else
                     (f"({pair[0]} + {pair[1]})" if how == "+" else f"{w.call('fmax')}({pair[0]}, {pair[1]})")
                     for pair in pairs]
        return parts[0]

    def over(self, text, how):
        """Over the lanes that share the row."""
        if self.w.lanes == 1:
            return text
        shared = "" if self.g["who"] == "warp" else ", buffer, lane"
        return f"{'sumOf' if how == '+' else 'maxOf'}({text}{shared})"

    def helpers(self):
        w = self.w
        if w.lanes == 1:
            return []
        lines = []
        names = (("maxOf", "max"), ("sumOf", "+")) if self.op == "softmax" else (("sumOf", "+"),)
        barrier = "__syncthreads();" if w.cuda else "barrier(CLK_LOCAL_MEM_FENCE);"
        for name, how in names:
            join = (lambda a, b: f"{a} + {b}") if how == "+" else (lambda a, b: f"{w.call('fmax')}({a}, {b})")
            if self.g["who"] == "warp":
                last = "1" if "lane" in self.slips else "0"
                lines += [f"__device__ float {name}(float v)", "{", f"    for (int mask = 16; mask > {last}; mask /= 2)",
                          f"        v = {join('v', '__shfl_xor_sync(0xffffffffu, v, mask)')};", "    return v;", "}"]
                continue
            head = "__device__ float" if w.cuda else "float"
            space = "" if w.cuda else "local "
            inner = "" if "barrier" in self.slips else "        " + barrier
            lines += [f"{head} {name}(float v, {space}float *buffer, int lane)", "{", "    buffer[lane] = v;", "    " + barrier,
                      f"    for (int n = {w.lanes} / 2; n > 0; n /= 2) {{", "        if (lane < n)",
                      f"            buffer[lane] = {join('buffer[lane]', 'buffer[lane + n]')};", inner, "    }",
                      "    v = buffer[0];", "    " + barrier, "    return v;", "}"]
        return [line for line in lines if line]

    def softmax(self):
        w, g = self.w, self.g
        low = "-INFINITY" if not w.cuda else "__int_as_float(0xff800000)"
        fmax = w.call("fmax")
        mean_top = "0.0f" if "max" in self.slips else "top"
        if g["walk"] == "online":
            start = low if "nan" in self.slips else "-3.0e38f"
            self.accumulators((("m", "float", start), ("s", w.accumulator, "0.0f")))
            kind = "float" if w.cuda else "vec"

            def both(scalar):
                e = Words("cuda" if w.cuda else "opencl", {**g, "exp": "exp2" if g["exp"] == "fold" else g["exp"]})
                t = "float" if scalar else kind
                return (f"{{ const {t} n = {fmax}($m$i, $a); $s$i = $s$i * {w.wide(e.exp('$m$i', 'n', scalar), scalar)}"
                        f" + {w.wide(e.exp('$a', 'n', scalar), scalar)}; $m$i = n; }}")
            self.walk(both, first=True)
            self.add(f"    const float top = {self.over(self.total('m', 'max'), 'max')};")
            if w.cuda:
                self.add(f"    for (int j = 0; j < {w.v}; ++j)", f"        s[j] *= {w.exp('m[j]', 'top', True)};")
            else:
                self.add(f"    s *= {w.wide(w.exp('m', 'top', False), False)};")
            if w.v > 1:
                self.add(f"    st *= {w.exp('mt', 'top', True)};")
        else:
            self.accumulators((("m", "float", low),))
            self.walk(lambda scalar: f"$m$i = {fmax}($m$i, $a);", first=True)
            self.add(f"    const float top = {self.over(self.total('m', 'max'), 'max')};")
            self.accumulators((("s", w.accumulator, "0.0f"),))
            keeps = g["walk"] == "keep"
            if keeps:
                self.walk(lambda scalar: f"{{ $a = {w.exp('$a', mean_top, scalar)}; $s$i += {w.wide('$a', scalar)}; }}", keeps=True)
            else:
                self.walk(lambda scalar: f"$s$i += {w.wide(w.exp('$a', mean_top, scalar), scalar)};")
        self.add(f"    const float total = {self.over('(float)' + self.total('s'), '+')};")
        times = "/ total" if g["recip"] == "div" else "* inverse"
        if g["recip"] != "div":
            self.add("    const float inverse = 1.0f / total;")
        if g["walk"] == "keep":
            self.walk(lambda scalar: f"$a = $a {times};", source="y", stores=True)
        else:
            self.walk(lambda scalar: f"$a = {w.exp('$a', mean_top, scalar)} {times};", stores=True)

    def norm(self):
        w, g = self.w, self.g
        part = ".e[j]" if w.cuda else ""
        layer = self.op == "layernorm"
        eps = "" if "eps" in self.slips else " + 1e-5f"
        real = w.accumulator
        sq = (lambda x, scalar: f"{w.wide(x, scalar)} * {w.wide(x, scalar)}" if not w.cuda else f"({real}){x} * {x}")
        if layer and g["walk"] == "one":
            self.accumulators((("s", real, "0.0f"), ("q", real, "0.0f")))
            self.walk(lambda scalar: f"{{ $s$i += {w.wide('$a', scalar)}; $q$i += {sq('$a', scalar)}; }}", first=True)
            self.add(f"    const {real} mean = {self.over(self.total('s'), '+')} / C;",
                     f"    const {real} variance = {self.over(self.total('q'), '+')} / C - mean * mean;")
        elif layer:
            self.accumulators((("s", real, "0.0f"),))
            self.walk(lambda scalar: f"$s$i += {w.wide('$a', scalar)};", first=True)
            self.add(f"    const float mean = {self.over(self.total('s'), '+')} / C;")
            self.accumulators((("q", real, "0.0f"),))
            self.walk(lambda scalar: f"$q$i += {sq('($a - mean)', scalar)};")
            self.add(f"    const float variance = {self.over(self.total('q'), '+')} / C;")
        else:
            self.accumulators((("q", real, "0.0f"),))
            self.walk(lambda scalar: f"$q$i += {sq('$a', scalar)};", first=True)
            self.add(f"    const float variance = {self.over(self.total('q'), '+')} / C;")
        if g["recip"] == "div":
            self.add(f"    const float spread = {w.call('sqrt')}((float)variance{eps});")
        else:
            self.add(f"    const float factor = {w.call('rsqrt')}((float)variance{eps});")
        times = "/ spread" if g["recip"] == "div" else "* factor"
        middle = "($a - (float)mean)" if layer else "$a"
        last = f" + b{part}" if layer else ""
        self.walk(lambda scalar: f"$a = {middle} {times} * g{part}{last};", stores=True)

    def text(self):
        w, g, op = self.w, self.g, self.op
        tensors = {"softmax": ["x"], "rmsnorm": ["x", "gamma"], "layernorm": ["x", "gamma", "beta"]}[op]
        who = g["who"]
        rows = min(int(g["rows"]), 32) if who == "warp" else g["rows"]  # a block of at most 1024 threads
        grid = f"ceil_div(R, {rows})" if who in ("item", "warp") else "R"
        block = {"item": f'"{rows}"', "warp": f'"32", "{rows}"'}.get(who, f'"{w.lanes}"')
        if "plan" in self.slips:
            grid = f"ceil_div(ROWS, {rows})"
        args = ", ".join(f'"{a}"' for a in tensors + ["y", "int R", "int C"])
        head = ["/*klineage", f'surface = "{"cuda" if w.cuda else "opencl"}"', "", "[[launch]]", f'kernel = "{op}"', f'grid = ["{grid}"]',
                f"block = [{block}]", f"args = [{args}]", "*/"]
        self.out = []
        const = "const float *__restrict__" if w.cuda else "global const float *restrict"
        params = ", ".join(f"{const} {t}" for t in tensors)
        out = "float *__restrict__ y" if w.cuda else "global float *restrict y"
        self.add(('extern "C" __global__ void ' if w.cuda else "kernel void ") + f"{op}({params}, {out}, int R, int C)", "{")
        first = "blockIdx.x" if w.cuda else "get_group_id(0)"
        index = {"item": f"{first} * {rows} + {'threadIdx.x' if w.cuda else 'get_local_id(0)'}",
                 "warp": f"{first} * {rows} + threadIdx.y"}.get(who, first)
        if w.lanes > 1:
            self.add(f"    const int lane = {'threadIdx.x' if w.cuda else 'get_local_id(0)'};")
            if who != "warp":
                size = 65536 if "shared" in self.slips else w.lanes
                self.add(f"    {'__shared__' if w.cuda else 'local'} float buffer[{size}];")
        self.add(f"    const int row = {index};")
        if who in ("item", "warp"):
            self.add(f"    if (row {'>' if 'bound' in self.slips else '>='} R)", "        return;")
        self.add("    x += (size_t)row * C;", "    y += (size_t)row * C;")
        full = "C" if w.v == 1 else f"C % {w.v} == 0 ? C : 0" if w.cuda else f"C / {w.v} * {w.v}"
        if "align" in self.slips and w.v > 1:
            full = f"C / {w.v} * {w.v}" if w.cuda else f"(C + {w.v} - 1) / {w.v} * {w.v}"
        self.add(f"    const int full = {full};")
        (self.softmax if op == "softmax" else self.norm)()
        self.add("}")
        types = []
        if w.cuda:
            types = ["union Pack {", f"    {w.vec} v;", f"    float e[{w.v}];", "};"]
        else:
            types = [f"typedef {'float6' if 'vector' in self.slips else w.vec} vec;"]
        return head, types + self.helpers() + self.out


def genes_of(op, surface):
    """Values by gene; the first is what a plain kernel has."""
    cuda = surface == "cuda"
    genes = {
        "who": ["item", "warp", "block"] if cuda else ["item", "group"],
        "rows": ["64", "32", "128", "256", "1", "2", "4", "8", "16"] if not cuda else ["64", "1", "2", "4", "8", "16", "32"],
        "lanes": ["64", "128", "256", "512"] if cuda else ["16", "4", "8", "32", "64"],
        "v": ["1", "2", "4"] if cuda else ["1", "2", "4", "8", "16"],
        "hold": ["0", "2", "4", "8"] if cuda else ["0", "4", "16", "64"],
        "recip": ["div", "mul"],
        "unroll": ["1", "2", "4", "8"],
        "stream": ["0", "1"],
        "sum": ["double", "float"] if op == "layernorm" or not cuda and op == "softmax" else ["float", "double"],
    }
    if op == "softmax":
        genes["walk"] = ["again" if cuda else "keep", "keep" if cuda else "again", "online"]
        genes["exp"] = ["exp", "native", "exp2", "fold"]
    elif op == "layernorm":
        genes["walk"] = ["two", "one"]
    return genes


def slips_of(op, surface, genes):
    """What can go wrong in the writing of this kernel."""
    slips = ["syntax", "name", "short", "plan"]
    if genes["who"] in ("item", "warp"):
        slips.append("bound")
    if genes["v"] != "1":
        slips += ["tail", "align"]
    if surface == "opencl":
        slips.append("vector")
    if genes["who"] in ("group", "block"):
        slips += ["barrier", "shared"]
    if genes["who"] == "warp":
        slips.append("lane")
    if op == "softmax":
        slips.append("nan" if genes["walk"] == "online" else "max")
    else:
        slips.append("eps")
    return slips


def write(op, surface, genes, slips):
    return Rows(op, surface, genes, slips).text()
