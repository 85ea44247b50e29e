/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = [32]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Eight results of 8192 terms by one warp, whose sums in single precision stay in tensor cores: of so few results one that is rounded to the
// other side is more than all of many may be.

#include <cuda_bf16.h>
extern "C" __global__ void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int lane = threadIdx.x, group = lane / 4, in = lane % 4 * 2;
    const int row = blockIdx.y * 16 + group, col = blockIdx.x * 8 + group;
    const auto load = [&](const __nv_bfloat16 *from, int r, int rows, int k) {
        return r < rows && k < K ? *reinterpret_cast<const unsigned *>(from + size_t(r) * K + k) : 0u;
    };
    float d[4] = {};
    for (int k = 0; k < K; k += 16) {
        const unsigned a0 = load(x, row, M, k + in), a1 = load(x, row + 8, M, k + in);
        const unsigned a2 = load(x, row, M, k + in + 8), a3 = load(x, row + 8, M, k + in + 8);
        const unsigned b0 = load(weight, col, N, k + in), b1 = load(weight, col, N, k + in + 8);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; ++i) {
        const int r = row + i / 2 * 8, c = blockIdx.x * 8 + in + i % 2;
        if (r < M && c < N)
            y[size_t(r) * N + c] = __float2bfloat16(d[i]);
    }
}
