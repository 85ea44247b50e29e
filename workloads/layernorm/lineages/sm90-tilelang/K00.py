"""klineage
surface = "tilelang"

[[tunable]]                      # columns a step
name = "BLOCK"
default = 1024
values = [256, 512, 1024, 2048]

[[tunable]]                      # threads of a row
name = "THREADS"
default = 128
values = [32, 64, 128, 256]

[[launch]]
kernel = "layernorm"
grid = ["R"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = (x − mean) / √(variance + 1e-5) · gamma[C] + beta[C] over the rows of x, f32.
#
# Three walks over the row: for the mean, the variance and the result.
import tilelang.language as T

R = T.dynamic("R")
C = T.dynamic("C")


@T.prim_func
def layernorm(x: T.Tensor((R, C), T.float32), gamma: T.Tensor((C,), T.float32), beta: T.Tensor((C,), T.float32), y: T.Tensor((R, C), T.float32)):
    with T.Kernel(R, threads=THREADS) as row:
        values = T.alloc_fragment((1, BLOCK), T.float32)
        squares = T.alloc_fragment((1, BLOCK), T.float32)
        mean = T.alloc_fragment((1,), T.float32)
        scale = T.alloc_fragment((1,), T.float32)
        T.fill(mean, 0)
        T.fill(scale, 0)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.if_then_else(k * BLOCK + j < C, x[row, k * BLOCK + j], 0)
            T.reduce_sum(values, mean, dim=1, clear=False)
        for i in T.Parallel(1):
            mean[i] /= T.cast(C, T.float32)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.if_then_else(k * BLOCK + j < C, x[row, k * BLOCK + j] - mean[i], 0)
            for i, j in T.Parallel(1, BLOCK):
                squares[i, j] = values[i, j] * values[i, j]
            T.reduce_sum(squares, scale, dim=1, clear=False)
        for i in T.Parallel(1):
            scale[i] = T.rsqrt(scale[i] / T.cast(C, T.float32) + 1e-5)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                if k * BLOCK + j < C:
                    y[row, k * BLOCK + j] = (x[row, k * BLOCK + j] - mean[i]) * scale[i] * gamma[k * BLOCK + j] + beta[k * BLOCK + j]
