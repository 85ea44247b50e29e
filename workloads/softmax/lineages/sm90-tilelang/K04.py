"""klineage
surface = "tilelang"

[[tunable]]                      # columns of the longest row that is kept in registers
name = "BLOCK"
default = 1024
values = [1024, 2048]

[[tunable]]
name = "THREADS"
default = 128
values = [32, 64, 128, 256]

[[launch]]
kernel = "softmax"
when = "C <= BLOCK && C % 4 == 0"
grid = ["R"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C > BLOCK || C % 4 != 0"
grid = ["R"]
args = ["x", "y", "int R", "int C"]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
#
# y[R,C] = softmax of the rows of x, f32.
#
# Where C is a multiple of 4 the compiler is told so: rows begin at multiples of 16 bytes, and a thread loads and stores four
# elements at once. Other rows are walked twice.
import tilelang.language as T

R = T.dynamic("R")
C = T.dynamic("C")


@T.prim_func
def softmax(x: T.Tensor((R, C), T.float32), y: T.Tensor((R, C), T.float32)):
    with T.Kernel(R, threads=THREADS) as row:
        T.assume(C % 4 == 0)
        values = T.alloc_fragment((1, BLOCK), T.float32)
        largest = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        for i, j in T.Parallel(1, BLOCK):
            values[i, j] = T.if_then_else(j < C, x[row, j], -T.infinity(T.float32))
        T.reduce_max(values, largest, dim=1)
        for i, j in T.Parallel(1, BLOCK):
            values[i, j] = T.exp(values[i, j] - largest[i])
        T.reduce_sum(values, total, dim=1)
        for i, j in T.Parallel(1, BLOCK):
            if j < C:
                y[row, j] = values[i, j] / total[i]


@T.prim_func
def softmax_any(x: T.Tensor((R, C), T.float32), y: T.Tensor((R, C), T.float32)):
    with T.Kernel(R, threads=THREADS) as row:
        values = T.alloc_fragment((1, BLOCK), T.float32)
        largest = T.alloc_fragment((1,), T.float32)
        before = T.alloc_fragment((1,), T.float32)
        base = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        T.fill(largest, -T.infinity(T.float32))
        T.fill(total, 0)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.if_then_else(k * BLOCK + j < C, x[row, k * BLOCK + j], -T.infinity(T.float32))
            T.copy(largest, before)
            T.reduce_max(values, largest, dim=1, clear=False)
            for i in T.Parallel(1):
                base[i] = T.if_then_else(largest[i] == -T.infinity(T.float32), 0, largest[i])  # nothing but masked elements yet
                total[i] *= T.exp(before[i] - base[i])
            for i, j in T.Parallel(1, BLOCK):
                values[i, j] = T.exp(values[i, j] - base[i])
            T.reduce_sum(values, total, dim=1, clear=False)
        for k in T.serial(T.ceildiv(C, BLOCK)):
            for i, j in T.Parallel(1, BLOCK):
                if k * BLOCK + j < C:
                    y[row, k * BLOCK + j] = T.exp(x[row, k * BLOCK + j] - largest[i]) / total[i]
