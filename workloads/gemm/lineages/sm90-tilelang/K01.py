"""klineage
surface = "tilelang"

[[tunable]]                      # rows of y a block
name = "BM"
default = 64
values = [64, 128]

[[tunable]]                      # columns of y a block
name = "BN"
default = 64
values = [64, 128]

[[tunable]]                      # of K a step
name = "BK"
default = 64
values = [32, 64]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 with sums in f32.
#
# Slabs of both operands go through shared memory to the tensor cores, one after the other; a block has a tile of 64 × 64.
import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")


@T.prim_func
def gemm(x: T.Tensor((M, K), T.bfloat16), weight: T.Tensor((N, K), T.bfloat16), y: T.Tensor((M, N), T.bfloat16)):
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
        a = T.alloc_shared((BM, BK), T.bfloat16)
        b = T.alloc_shared((BN, BK), T.bfloat16)
        sums = T.alloc_fragment((BM, BN), T.float32)
        T.clear(sums)
        for k in T.serial(T.ceildiv(K, BK)):
            T.copy(x[by * BM, k * BK], a)
            T.copy(weight[bx * BN, k * BK], b)
            T.gemm(a, b, sums, transpose_B=True)
        T.copy(sums, y[by * BM, bx * BN])
