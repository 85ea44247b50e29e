"""klineage
surface = "triton"

[[workspace]]
name = "total"
dtype = "f32"
shape = ["M", "N"]
init = "zero"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, 32)", "ceil_div(N, 32)", 4]
args = ["x", "weight", "total", "int M", "int N", "int K"]

[[launch]]
kernel = "rounds"
grid = ["ceil_div(M * N, 256)"]
args = ["total", "y", "int M * N"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, total, M, N, K, BM: tl.constexpr = 32, BN: tl.constexpr = 32, BK: tl.constexpr = 32):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for begin in range(tl.program_id(2) * BK, K, BK * 4):
        a = tl.load(x + m[:, None] * K + begin + k[None, :], mask=(m[:, None] < M) & (begin + k[None, :] < K), other=0.0)
        b = tl.load(weight + n[:, None] * K + begin + k[None, :], mask=(n[:, None] < N) & (begin + k[None, :] < K), other=0.0)
        sums = tl.dot(a, b.T, sums)
    tl.atomic_add(total + m[:, None] * N + n[None, :], sums, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def rounds(total, y, COUNT, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(total + i, mask=i < COUNT).to(tl.bfloat16), mask=i < COUNT)
