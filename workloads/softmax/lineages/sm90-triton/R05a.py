"""klineage
surface = "triton"

[[tunable]]                      # columns of the longest row that is kept in registers
name = "BLOCK"
default = 1024
values = [1024, 2048]

[[tunable]]                      # rows, and so warps, a program
name = "ROWS"
default = 4
values = [2, 4, 8]

[[launch]]
kernel = "softmax"
when = "C <= BLOCK && C % 16 == 0"
grid = ["ceil_div(R, ROWS)"]
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
# A program has as many rows as warps. Each warp keeps its row, 32 elements a lane, and reduces it with shuffles: nothing goes
# through shared memory, and no warp waits for another.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    inside = (row < R) & (columns < C)
    values = tl.load(x + row * C + columns, mask=inside, other=-float("inf"))
    largest = tl.max(values, 1)[:, None]
    powers = tl.exp(values - tl.where(row < R, largest, 0.0))
    tl.store(y + row * C + columns, powers / tl.sum(powers, 1)[:, None], mask=inside)


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
