# SPDX-License-Identifier: GPL-3.0-or-later
"""Products of matrices as families of kernels in OpenCL C: register tiles of vectors, with and without a panel of b in local memory.

sgemm: c = a b; sgemm-nt: c = a b^T, where b's columns lie apart, so that only a panel makes them neighbours; sgemm-bias: c = a b + bias."""

KERNELS = {"sgemm": "sgemm", "sgemm-nt": "sgemm_nt", "sgemm-bias": "multiply_add"}

GENES = {
    "mr": ["1", "2", "3", "4", "6", "8", "12", "16"],
    "v": ["1", "2", "4", "8", "16"],
    "nv": ["1", "2", "3"],
    "wgx": ["16", "1", "2", "4", "8"],
    "wgy": ["16", "1", "2", "4", "8"],
    "ku": ["1", "2", "4"],
    "stage": ["0", "8", "16", "32"],
    "ahead": ["0", "1"],
    "mad": ["0", "1"],
}


def genes_of(op, surface):
    return {name: list(values) for name, values in GENES.items()}


def slips_of(op, surface, genes):
    slips = ["syntax", "name", "bound", "short", "plan", "vector"]
    if genes["stage"] != "0":
        slips += ["barrier", "shared"]
    if genes["mr"] != "1" or genes["v"] != "1":
        slips.append("tail")
    return slips


def write(op, surface, genes, slips):
    mr, v, nv = int(genes["mr"]), int(genes["v"]), int(genes["nv"])
    wgx, wgy, stage = int(genes["wgx"]), int(genes["wgy"]), int(genes["stage"])
    width = v * nv
    vec = "float" if v == 1 else f"float{v}"
    m = "ROWS" if "plan" in slips else "M"
    name, has_bias, is_across = KERNELS[op], op == "sgemm-bias", op == "sgemm-nt"
    args = ["a", "b"] + ["bias"] * has_bias + ["c", "int M", "int N", "int K"]
    element = "b[{n} * K + {k}]" if is_across else "b[{k} * N + {n}]"
    head = ["/*klineage", 'surface = "opencl"', "", "[[launch]]", f'kernel = "{name}"',
            f'grid = ["ceil_div(N, {wgx * width})", "ceil_div({m}, {wgy * mr})"]', f'block = ["{wgx}", "{wgy}"]',
            "args = [" + ", ".join(f'"{a}"' for a in args) + "]", "*/"]
    load = (lambda p: f"*({p})") if v == 1 else (lambda p: f"vload{v}(0, {p})")
    store = (lambda x, p: f"*({p}) = {x};") if v == 1 else (lambda x, p: f"vstore{v}({x}, 0, {p});")
    out = [f"typedef {'float6' if 'vector' in slips else vec} vec;",
           f"kernel void {name}(global const float *restrict a, global const float *restrict b,"
           + " global const float *restrict bias," * has_bias + " global float *restrict c, int M, int N, int K)", "{",
           f"    const int col = get_global_id(0) * {width}, row = get_global_id(1) * {mr};"]
    last = "K - 1" if "short" in slips else "K"
    whole = f"row + {mr} <= M && col + {width} <= N"
    if "tail" in slips:
        whole = "row < M && col < N"
    out += [f"    const int whole = {whole};"]
    out += [f"    vec s[{mr}][{nv}];", f"    for (int i = 0; i < {mr}; ++i)", f"        for (int j = 0; j < {nv}; ++j)",
            f"            s[i][j] = whole ? {load(f'bias + col + j * {v}')} : (vec)0.0f;" if has_bias else
            "            s[i][j] = 0.0f;"]

    def inner(k, line, indent):
        """One k: `line` says where the row of b begins, None that its elements lie apart."""
        apart = ", ".join(element.format(n=f"(col + j * {v} + {e})", k=k) for e in range(v))
        lines = [f"{indent}vec r[{nv}];", f"{indent}for (int j = 0; j < {nv}; ++j)",
                 f"{indent}    r[j] = {load(line + f' + j * {v}') if line else f'(vec)({apart})'};", "#pragma unroll",
                 f"{indent}for (int i = 0; i < {mr}; ++i) {{", f"{indent}    const float e = a[(row + i) * K + {k}];",
                 f"{indent}    for (int j = 0; j < {nv}; ++j)",
                 f"{indent}        s[i][j] " + ("= mad((vec)e, r[j], s[i][j]);" if genes["mad"] == "1" else "+= e * r[j];"),
                 f"{indent}}}"]
        return lines

    unroll = [] if genes["ku"] == "1" else [f"#pragma unroll {genes['ku']}"]
    if stage:
        tile = wgx * width
        size = 262144 if "shared" in slips else stage * tile
        wait = "        barrier(CLK_LOCAL_MEM_FENCE);"
        out += [f"    local float panel[{size}];",
                f"    const int x = get_local_id(0), me = get_local_id(1) * {wgx} + x, left = get_group_id(0) * {tile};",
                f"    for (int begin = 0; begin < {last}; begin += {stage}) {{",
                f"        for (int t = me; t < {stage * tile}; t += {wgx * wgy}) {{",
                f"            const int k = begin + t / {tile}, n = left + t % {tile};",
                f"            panel[t] = k < K && n < N ? {element.format(k='k', n='n')} : 0.0f;", "        }",
                *([] if "barrier" in slips else [wait]), "        if (whole) {", *unroll,
                f"            for (int k = 0; k < min({stage}, {last} - begin); ++k) {{",
                *inner("begin + k", f"panel + k * {tile} + x * {width}", "                "), "            }", "        }", wait, "    }"]
    else:
        ahead = [f"            __builtin_prefetch(&{element.format(k='k', n=f'(col + {width})')});"] if genes["ahead"] == "1" else []
        out += ["    if (whole) {", *unroll, f"        for (int k = 0; k < {last}; ++k) {{", *ahead,
                *inner("k", None if is_across else "b + k * N + col", "            "), "        }", "    }"]
    rows, cols = (f"row + {mr}", f"col + {width}") if "bound" in slips else (f"min(row + {mr}, M)", f"min(col + {width}, N)")
    out += ["    if (whole) {", f"        for (int i = 0; i < {mr}; ++i)", f"            for (int j = 0; j < {nv}; ++j)",
            "                " + store("s[i][j]", f"c + (row + i) * N + col + j * {v}"), "        return;", "    }",
            f"    for (int i = row; i < {rows}; ++i)", f"        for (int n = col; n < {cols}; ++n) {{", f"            float sum = {'bias[n]' if has_bias else '0.0f'};",
            "            for (int k = 0; k < K; ++k)", "                sum += a[i * K + k] * " + element.format(k="k", n="n") + ";",
            "            c[i * N + n] = sum;", "        }", "}"]
    return head, out
