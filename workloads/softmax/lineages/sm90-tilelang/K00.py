"""klineage
surface = "tilelang"

[[launch]]
kernel = "softmax"
grid = ["R"]
args = ["x", "y", "int R", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# The definition: a block of one warp walks its row three times in steps of 32 columns, for the maximum, the sum and the result.
import tilelang.language as T

R = T.dynamic("R")
C = T.dynamic("C")


@T.prim_func
def softmax(x: T.Tensor((R, C), T.float32), y: T.Tensor((R, C), T.float32)):
    with T.Kernel(R, threads=32) as row:
        values = T.alloc_fragment((1, 32), T.float32)
        largest = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        T.fill(largest, -T.infinity(T.float32))
        T.fill(total, 0)
        for k in T.serial(T.ceildiv(C, 32)):
            for i, j in T.Parallel(1, 32):
                values[i, j] = T.if_then_else(k * 32 + j < C, x[row, k * 32 + j], -T.infinity(T.float32))
            T.reduce_max(values, largest, dim=1, clear=False)
        for k in T.serial(T.ceildiv(C, 32)):
            for i, j in T.Parallel(1, 32):
                values[i, j] = T.if_then_else(k * 32 + j < C, T.exp(x[row, k * 32 + j] - largest[i]), 0)
            T.reduce_sum(values, total, dim=1, clear=False)
        for k in T.serial(T.ceildiv(C, 32)):
            for i, j in T.Parallel(1, 32):
                if k * 32 + j < C:
                    y[row, k * 32 + j] = T.exp(x[row, k * 32 + j] - largest[i]) / total[i]
