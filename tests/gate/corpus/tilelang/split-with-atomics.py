"""klineage
surface = "tilelang"

[[workspace]]
name = "total"
dtype = "f32"
shape = ["M", "N"]
init = "zero"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(M, 64)", "ceil_div(N, 64)", 4]
args = ["x", "weight", "total", "int M", "int N", "int K"]

[[launch]]
kernel = "rounds"
grid = ["ceil_div(M * N, 256)"]
args = ["total", "y", "int M", "int N"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import tilelang.language as T

M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")
TILE = 64
DEPTH = 32
PARTS = 4


@T.macro
def add_tile(sums, total, m, n):
    for i, j in T.Parallel(TILE, TILE):
        if (m + i < M) and (n + j < N):
            T.atomic_add(total[m + i, n + j], sums[i, j])


@T.prim_func
def gemm(x: T.Tensor((M, K), T.bfloat16), weight: T.Tensor((N, K), T.bfloat16), total: T.Tensor((M, N), T.float32)):
    with T.Kernel(T.ceildiv(M, TILE), T.ceildiv(N, TILE), PARTS, threads=128) as (bx, by, part):
        a = T.alloc_shared((TILE, DEPTH), T.bfloat16)
        b = T.alloc_shared((TILE, DEPTH), T.bfloat16)
        sums = T.alloc_fragment((TILE, TILE), T.float32)
        T.clear(sums)
        for k in T.serial(T.ceildiv(K, DEPTH * PARTS)):
            T.copy(x[bx * TILE, (k * PARTS + part) * DEPTH], a)
            T.copy(weight[by * TILE, (k * PARTS + part) * DEPTH], b)
            T.gemm(a, b, sums, transpose_B=True)
        add_tile(sums, total, bx * TILE, by * TILE)


@T.prim_func
def rounds(total: T.Tensor((M, N), T.float32), y: T.Tensor((M, N), T.bfloat16)):
    with T.Kernel(T.ceildiv(M * N, 256), threads=256) as block:
        for i in T.Parallel(256):
            if block * 256 + i < M * N:
                y[(block * 256 + i) // N, (block * 256 + i) % N] = T.cast(total[(block * 256 + i) // N, (block * 256 + i) % N], T.bfloat16)
