"""klineage
surface = "triton"

[[tunable]]                      # rows of y a program
name = "BM"
default = 16
values = [16, 32]

[[tunable]]                      # columns of y a program
name = "BN"
default = 16
values = [16, 32]

[[tunable]]                      # of K a step
name = "BK"
default = 16
values = [16, 32]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, BM)", "ceil_div(N, BN)"]
num_warps = 4
args = ["x", "weight", "y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 with sums in f32.
#
# A program makes a small tile of y: each step it loads a piece of both operands, multiplies all pairs of their rows and sums the
# products up.
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
        sums += tl.sum(a[:, None, :].to(tl.float32) * b[None, :, :].to(tl.float32), 2)
    tl.store(y + m[:, None] * N + n[None, :], sums.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))
