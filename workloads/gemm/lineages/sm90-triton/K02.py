"""klineage
surface = "triton"

[[tunable]]                      # rows of y a program
name = "BM"
default = 128
values = [64, 128, 256]

[[tunable]]                      # columns of y a program
name = "BN"
default = 128
values = [64, 128, 256]

[[tunable]]                      # of K a step
name = "BK"
default = 64
values = [32, 64, 128]

[[tunable]]                      # warps a program
name = "WARPS"
default = 8
values = [4, 8]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, BM)", "ceil_div(N, BN)"]
num_warps = "WARPS"
num_stages = 1
args = ["x", "weight", "y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 with sums in f32.
#
# Tiles of 128 × 128: each operand that is loaded is used 128 times. The sums stay in registers.
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        a = tl.load(x + m[:, None] * K + begin + k[None, :], mask=(m[:, None] < M) & (begin + k[None, :] < K), other=0.0)
        b = tl.load(weight + n[:, None] * K + begin + k[None, :], mask=(n[:, None] < N) & (begin + k[None, :] < K), other=0.0)
        sums = tl.dot(a, b.T, sums)
    tl.store(y + m[:, None] * N + n[None, :], sums.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))
