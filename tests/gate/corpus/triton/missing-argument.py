"""klineage
surface = "triton"

[[launch]]
kernel = "softmax"
grid = ["R"]
args = ["x", "y", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, R, C, BLOCK: tl.constexpr = 256):
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
