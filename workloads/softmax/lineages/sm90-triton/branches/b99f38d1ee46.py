"""klineage
surface = "triton"

[[tunable]]                      # columns of the longest row that is kept in registers
name = "BLOCK"
default = 1024
values = [1024, 2048]

[[tunable]]
name = "WARPS"
default = 4
values = [1, 2, 4, 8]

[[launch]]
kernel = "softmax"
when = "C <= BLOCK"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "y", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C > BLOCK"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# A row of at most BLOCK columns stays in registers for all three passes: x is read once, and each exponential is taken once. Longer
# rows are walked three times.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, C, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0) * C
    values = tl.load(x + row + columns, mask=columns < C, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + columns, powers / tl.sum(powers, 0), mask=columns < C)


@triton.jit
def softmax_any(x, y, C, BLOCK: tl.constexpr):
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
