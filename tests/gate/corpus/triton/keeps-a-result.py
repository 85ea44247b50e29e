"""klineage
surface = "triton"

[[workspace]]
name = "kept"
dtype = "f32"
shape = ["R", 8192]

[[launch]]
kernel = "softmax"
grid = ["R"]
args = ["x", "y", "kept", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, kept, C, BLOCK: tl.constexpr = 4096):
    row = tl.program_id(0) * C
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    if tl.load(kept + tl.program_id(0) * 8192) == tl.load(x + row):
        tl.store(y + row + columns, tl.load(kept + tl.program_id(0) * 8192 + 1 + columns, mask=inside), mask=inside)
    else:
        values = tl.load(x + row + columns, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        result = powers / tl.sum(powers, 0)
        tl.store(kept + tl.program_id(0) * 8192 + 1 + columns, result, mask=inside)
        tl.store(y + row + columns, result, mask=inside)
        tl.debug_barrier()
        tl.store(kept + tl.program_id(0) * 8192, tl.load(x + row))
