/*klineage
surface = "cuda"

[[tunable]]
name = "BK"
default = 32
values = [16, 32, 64]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// A thread owns an 8 × 8 patch of y in registers. A step along K reads 8 + 8 numbers from shared memory
// and makes 64 products of them: a quarter of a shared load a product, where one element a thread needed
// two. The patch is 8 neighbouring rows and columns.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 128;
constexpr int TM = BM / 16, TN = BN / 16;
// Violated: no padding, and the rows of a patch are neighbours, so that 16 lanes read from the same bank.
constexpr int PITCH = BK;

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __nv_bfloat16 xs[BM][PITCH];
    __shared__ __nv_bfloat16 ws[BN][PITCH];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * 16 + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    float acc[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        for (int i = 0; i < BM * BK / 256; ++i) {
            const int r = (thread + 256 * i) / BK, c = thread % BK, k = k0 + c;
            xs[r][c] = row0 + r < M && k < K ? x[size_t(row0 + r) * K + k] : __nv_bfloat16(0.0f);
            ws[r][c] = col0 + r < N && k < K ? weight[size_t(col0 + r) * K + k] : __nv_bfloat16(0.0f);
        }
        __syncthreads();

        for (int kk = 0; kk < BK; ++kk) {
            float a[TM], b[TN];
            for (int i = 0; i < TM; ++i)
                a[i] = __bfloat162float(xs[ty * TM + i][kk]);
            for (int j = 0; j < TN; ++j)
                b[j] = __bfloat162float(ws[tx * TN + j][kk]);
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            const int row = row0 + ty * TM + i, col = col0 + tx * TN + j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
