/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = [32]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Whole numbers of eight bits by tensor cores, a warp a tile of 16 by 8, straight from memory.

__device__ __forceinline__ unsigned fourAt(const signed char *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const unsigned *>(from + size_t(row) * K + k) : 0u;
}
extern "C" __global__ __launch_bounds__(32) void product(const signed char *x, const signed char *weight, int *y, int M, int N, int K)
{
    const int group = threadIdx.x / 4, place = threadIdx.x % 4, row = blockIdx.y * 16 + group, col = blockIdx.x * 8 + group;
    int sum[4] = {};
    for (int k = 0; k < K; k += 32) {
        const int at = k + 4 * place;
        const unsigned a0 = fourAt(x, row, M, at, K), a1 = fourAt(x, row + 8, M, at, K), a2 = fourAt(x, row, M, at + 16, K), a3 = fourAt(x, row + 8, M, at + 16, K);
        const unsigned b0 = fourAt(weight, col, N, at, K), b1 = fourAt(weight, col, N, at + 16, K);
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; ++i) {
        const int r = row + i / 2 * 8, n = blockIdx.x * 8 + 2 * place + i % 2;
        if (r < M && n < N)
            y[size_t(r) * N + n] = sum[i];
    }
}
