"""klineage
surface = "triton"

[[tunable]]                      # columns of the longest row that is kept in registers
name = "BLOCK"
default = 1024
values = [1024, 2048]

[[tunable]]                      # rows, and so warps, a step of a program
name = "ROWS"
default = 4
values = [2, 4, 8]

[[tunable]]                      # programs a multiprocessor
name = "RESIDENT"
default = 8
values = [2, 4, 8, 16]

[[launch]]
kernel = "softmax"
when = "C <= BLOCK && C % 16 == 0"
grid = ["min(ceil_div(R, ROWS), RESIDENT * sm_count)"]
num_warps = "ROWS"
multiples_of_16 = ["C"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C > BLOCK || C % 16 != 0"
grid = ["R"]
num_warps = 4
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# As many programs as fit on the device stay there and walk over the rows, and the exponentials are powers of two: the factor is multiplied
# in once, and each row is scaled by one reciprocal.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)[None, :]
    for begin in tl.range(tl.program_id(0) * ROWS, R, tl.num_programs(0) * ROWS):
        row = begin + tl.arange(0, ROWS)[:, None]
        inside = (row < R) & (columns < C)
        values = tl.load(x + row * C + columns, mask=inside, other=-float("inf"))
        largest = tl.where(row < R, tl.max(values, 1)[:, None], 0.0)
        powers = tl.exp2((values - largest) * 1.4426950408889634)
        tl.store(y + row * C + columns, powers * (1.0 / tl.sum(powers, 1)[:, None]), mask=inside)


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
