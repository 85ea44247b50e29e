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
when = "C <= BLOCK && C % 16 == 0"
grid = ["R"]
num_warps = "WARPS"
multiples_of_16 = ["C"]
args = ["x", "y", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C > BLOCK || C % 16 != 0"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# Where C is a multiple of 16 the compiler is told so: rows begin at multiples of 16 bytes, and a thread loads and stores four
# elements at once. Other rows are walked twice.
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
