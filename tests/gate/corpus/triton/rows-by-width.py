"""klineage
surface = "triton"

[[tunable]]
name = "ROWS"
default = 8
values = [1, 2, 4, 8]

[[tunable]]
name = "BLOCK"
default = 256
values = [256, 512]

[[launch]]
kernel = "short"
when = "C <= BLOCK && C % 16 == 0"
grid = ["ceil_div(R, ROWS)"]
num_warps = "ROWS"
multiples_of_16 = ["C"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax"
when = "C > BLOCK || C % 16 != 0"
grid = ["R"]
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def short(x, y, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    inside = (row < R) & (columns < C)
    values = tl.load(x + row * C + columns, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.where(row < R, tl.max(values, 1)[:, None], 0.0))
    tl.store(y + row * C + columns, powers / tl.sum(powers, 1)[:, None], mask=inside)


@triton.jit
def softmax(x, y, C, BLOCK: tl.constexpr = 256):
    x += tl.program_id(0) * C
    y += tl.program_id(0) * C
    columns = tl.arange(0, BLOCK)
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for begin in range(0, C, BLOCK):
        values = tl.load(x + begin + columns, mask=begin + columns < C, other=-float("inf"))
        grown = tl.maximum(largest, tl.max(values, 0))
        base = tl.where(grown == -float("inf"), 0.0, grown)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(values - base), 0)
        largest = grown
    for begin in range(0, C, BLOCK):
        inside = begin + columns < C
        values = tl.load(x + begin + columns, mask=inside)
        tl.store(y + begin + columns, tl.exp(values - largest) / total, mask=inside)
