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
def softmax(x, y, C, BLOCK: tl.constexpr = 256):
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + columns, mask=columns < C)
    for i in tl.static_range(1_000_000):
        value = tl.exp(value) + i
    tl.store(y + columns, value, mask=columns < C)
