"""klineage
surface = "tilelang"

[[tunable]]                      # columns a step
name = "BLOCK"
default = 1024
values = [256, 512, 1024, 2048]

[[tunable]]
name = "THREADS"
default = 128
values = [32, 64, 128, 256]

[[launch]]
kernel = "softmax"
grid = ["R"]
args = ["x", "y", "int R", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# Four warps share a row and take 1024 columns a step, so that eight loads of a thread are in flight at once. The reductions go
# through shared memory.
import tilelang.language as T

R = T.dynamic("R")
C = T.dynamic("C")


@T.prim_func
def softmax(x: T.Tensor((R, C), T.float32), y: T.Tensor((R, C), T.float32)):
    with T.Kernel(R, threads=THREADS) as row:
        values = T.alloc_fragment((1, BLOCK), T.float32)
        largest = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        T.fill(largest, -T.infinity(T.float32))
        T.fill(total, 0)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.if_then_else(k * BLOCK + j < C, x[row, k * BLOCK + j], -T.infinity(T.float32))
            T.reduce_max(values, largest, dim=1, clear=False)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.if_then_else(k * BLOCK + j < C, T.exp(x[row, k * BLOCK + j] - largest[i]), 0)
            T.reduce_sum(values, total, dim=1, clear=False)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                if k * BLOCK + j < C:
                    y[row, k * BLOCK + j] = T.exp(x[row, k * BLOCK + j] - largest[i]) / total[i]
