"""klineage
surface = "triton"

[[launch]]
kernel = "softmax"
grid = ["R"]
num_warps = 1
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# The definition: a program, which is one warp, walks its row three times in steps of 32 columns, for the maximum, the sum
# and the result.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, C, BLOCK: tl.constexpr = 32):
    x += tl.program_id(0) * C
    y += tl.program_id(0) * C
    columns = tl.arange(0, BLOCK)
    largest = tl.full((), -float("inf"), tl.float32)
    for begin in range(0, C, BLOCK):
        values = tl.load(x + begin + columns, mask=begin + columns < C, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(values, 0))
    total = tl.zeros((), tl.float32)
    for begin in range(0, C, BLOCK):
        values = tl.load(x + begin + columns, mask=begin + columns < C, other=-float("inf"))
        total += tl.sum(tl.exp(values - largest), 0)
    for begin in range(0, C, BLOCK):
        inside = begin + columns < C
        values = tl.load(x + begin + columns, mask=inside)
        tl.store(y + begin + columns, tl.exp(values - largest) / total, mask=inside)
