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
kernel = "layernorm"
when = "C <= BLOCK"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "gamma", "beta", "y", "int C"]

[[launch]]
kernel = "layernorm_any"
when = "C > BLOCK"
grid = ["R"]
num_warps = "WARPS"
args = ["x", "gamma", "beta", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = (x − mean) / √(variance + 1e-5) · gamma[C] + beta[C] over the rows of x, f32.
#
# A row of at most BLOCK columns stays in registers for all three passes: x is read once. Longer rows are walked three times.
import triton
import triton.language as tl


@triton.jit
def layernorm(x, gamma, beta, y, C, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    row = tl.program_id(0) * C
    values = tl.load(x + row + columns, mask=inside, other=0.0)
    mean = tl.sum(values, 0) / C
    away = tl.where(inside, values - mean, 0.0)  # what fills a short row does not count
    scale = 1.0 / tl.sqrt_rn(tl.sum(away * away, 0) / C + 1e-5)
    shift = tl.load(beta + columns, mask=inside)
    tl.store(y + row + columns, away * scale * tl.load(gamma + columns, mask=inside) + shift, mask=inside)


@triton.jit
def layernorm_any(x, gamma, beta, y, C, BLOCK: tl.constexpr):
    x += tl.program_id(0) * C
    y += tl.program_id(0) * C
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float32)
    for begin in range(0, C, BLOCK):
        total += tl.sum(tl.load(x + begin + columns, mask=begin + columns < C, other=0.0), 0)
    mean = total / C
    squares = tl.zeros((), tl.float32)
    for begin in range(0, C, BLOCK):
        inside = begin + columns < C
        away = tl.where(inside, tl.load(x + begin + columns, mask=inside, other=0.0) - mean, 0.0)
        squares += tl.sum(away * away, 0)
    scale = 1.0 / tl.sqrt_rn(squares / C + 1e-5)
    for begin in range(0, C, BLOCK):
        inside = begin + columns < C
        away = tl.load(x + begin + columns, mask=inside) - mean
        shift = tl.load(beta + begin + columns, mask=inside)
        tl.store(y + begin + columns, away * scale * tl.load(gamma + begin + columns, mask=inside) + shift, mask=inside)
