"""klineage
surface = "triton"

[[tunable]]
name = "BM"
default = 64
values = [64, 128]

[[tunable]]
name = "BN"
default = 64
values = [32, 64]

[[tunable]]
name = "BK"
default = 64
values = [32, 64]

[[tensormap]]
name = "rows"
tensor = "x"
box = ["BM", "BK"]

[[tensormap]]
name = "columns"
tensor = "weight"
box = ["BN", "BK"]

[[tensormap]]
name = "tiles"
tensor = "y"
box = ["BM", "BN"]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, BM)", "ceil_div(N, BN)"]
args = ["rows", "columns", "tiles", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        sums = tl.dot(x.load([m, begin]), weight.load([n, begin]).T, sums)
    y.store([m, n], sums.to(tl.bfloat16))
