"""klineage
surface = "tilelang"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 with sums in f32.
#
# The definition: a thread has one element of y, and adds up its K products one after the other.
import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")


@T.prim_func
def gemm(x: T.Tensor((M, K), T.bfloat16), weight: T.Tensor((N, K), T.bfloat16), y: T.Tensor((M, N), T.bfloat16)):
    with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=256) as (bx, by):
        sums = T.alloc_fragment((16, 16), T.float32)
        T.clear(sums)
        for k in T.serial(K):
            for i, j in T.Parallel(16, 16):
                if by * 16 + i < M and bx * 16 + j < N:
                    sums[i, j] += T.cast(x[by * 16 + i, k], T.float32) * T.cast(weight[bx * 16 + j, k], T.float32)
        for i, j in T.Parallel(16, 16):
            if by * 16 + i < M and bx * 16 + j < N:
                y[by * 16 + i, bx * 16 + j] = T.cast(sums[i, j], T.bfloat16)
