"""klineage
surface = "triton"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, 32)", "ceil_div(N, 32)"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BM: tl.constexpr = 32, BN: tl.constexpr = 32, BK: tl.constexpr = 32):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for begin in range(0, K, BK):
        a = tl.load(x + m[:, None] * K + begin + k[None, :], mask=(m[:, None] < M) & (begin + k[None, :] < K), other=0.0)
        b = tl.load(weight + n[:, None] * K + begin + k[None, :], mask=(n[:, None] < N) & (begin + k[None, :] < K), other=0.0)
        sums = sums + tl.dot(a.to(tl.float16), b.to(tl.float16).T, out_dtype=tl.float16).to(tl.float32)
    tl.store(y + m[:, None] * N + n[None, :], sums.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))
