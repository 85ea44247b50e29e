"""klineage
surface = "triton"

[[tunable]]                      # columns a step
name = "BLOCK"
default = 1024
values = [256, 512, 1024, 2048]

[[tunable]]
name = "WARPS"
default = 4
values = [1, 2, 4, 8]

[[launch]]
kernel = "softmax"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# The maximum and the sum are found in one walk: a sum is scaled down when the maximum grows. x is read twice.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, C, BLOCK: tl.constexpr):
    x += tl.program_id(0) * C
    y += tl.program_id(0) * C
    columns = tl.arange(0, BLOCK)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for begin in range(0, C, BLOCK):
        values = tl.load(x + begin + columns, mask=begin + columns < C, other=-float("inf"))
        grown = tl.maximum(largest, tl.max(values, 0))
        base = tl.where(grown == -float("inf"), 0.0, grown)  # nothing but masked elements yet
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(values - base), 0)
        largest = grown
    for begin in range(0, C, BLOCK):
        inside = begin + columns < C
        values = tl.load(x + begin + columns, mask=inside)
        tl.store(y + begin + columns, tl.exp(values - largest) / total, mask=inside)
