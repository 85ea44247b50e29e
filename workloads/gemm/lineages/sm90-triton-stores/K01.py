"""klineage
surface = "triton"

[[tunable]]                      # rows of y a program
name = "BM"
default = 128
values = [64, 128, 256]

[[tunable]]                      # columns of y a program
name = "BN"
default = 256
values = [64, 128, 256]

[[tunable]]                      # of K a step
name = "BK"
default = 64
values = [32, 64, 128]

[[tunable]]                      # warps a program
name = "WARPS"
default = 8
values = [4, 8]

[[tunable]]                      # slabs of K in flight
name = "STAGES"
default = 3
values = [2, 3, 4]

[[tunable]]                      # rows of tiles that are walked together
name = "GROUP"
default = 8
values = [1, 4, 8, 16]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = ["BM", "BK"]
l2_promotion = "128B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = ["BN", "BK"]
l2_promotion = "128B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = ["BM", "BN"]
l2_promotion = "128B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, BM) * ceil_div(N, BN)"]
num_warps = "WARPS"
num_stages = "STAGES"
args = ["tm_x", "tm_weight", "tm_y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 with sums in f32.
#
# Slabs come through tensor maps, and the sums leave through one, by way of shared memory.
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    first = tile // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP)
    m = (first + tile % (GROUP * columns) % high) * BM
    n = tile % (GROUP * columns) // high * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        sums = tl.dot(x.load([m, begin]), weight.load([n, begin]).T, sums)
    y.store([m, n], sums.to(tl.bfloat16))
