/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 64)", "ceil_div(M, 64)", "B"]
block = ["16", "16"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with 64 x 64 blocks of y, 16-deep slices of a and b widened to f32 in shared memory, and 4 x 4 sums a thread in registers;
// still missing are the tensor cores, and any overlap of the copies with the arithmetic.
//
// N and K are multiples of 8, so a group of four neighbours in a row is wholly inside or wholly outside, and aligned to 8 bytes.

#include <cuda_bf16.h>

#define BM 64
#define BN 64
#define BK 16
#define PAD 4

static __device__ __forceinline__ float4 widen(uint2 v)
{
    return make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u), __uint_as_float(v.y << 16),
                       __uint_as_float(v.y & 0xffff0000u));
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    return unsigned(__bfloat16_as_ushort(__float2bfloat16(low))) |
           (unsigned(__bfloat16_as_ushort(__float2bfloat16(high))) << 16);
}

extern "C" __global__ void __launch_bounds__(256)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) float sa[BK][BM + PAD]; // transposed: k first
    __shared__ __align__(16) float sb[BK][BN + PAD];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * 16 + tx;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    // What this thread copies: four elements of a row of a, four of a row of b.
    const int a_row = tid / 4;
    const int a_k = (tid % 4) * 4;
    const int b_k = tid / 16;
    const int b_col = (tid % 16) * 4;
    const bool a_row_in = row0 + a_row < M;
    const bool b_col_in = col0 + b_col < N;

    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            sum[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += BK) {
        uint2 va = make_uint2(0u, 0u);
        uint2 vb = make_uint2(0u, 0u);
        if (a_row_in && k0 + a_k < K)
            va = *reinterpret_cast<const uint2 *>(a + size_t(row0 + a_row) * K + k0 + a_k);
        if (b_col_in && k0 + b_k < K)
            vb = *reinterpret_cast<const uint2 *>(b + size_t(k0 + b_k) * N + col0 + b_col);

        const float4 fa = widen(va);
        sa[a_k + 0][a_row] = fa.x;
        sa[a_k + 1][a_row] = fa.y;
        sa[a_k + 2][a_row] = fa.z;
        sa[a_k + 3][a_row] = fa.w;
        *reinterpret_cast<float4 *>(&sb[b_k][b_col]) = widen(vb);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float4 p = *reinterpret_cast<const float4 *>(&sa[k][ty * 4]);
            const float4 q = *reinterpret_cast<const float4 *>(&sb[k][tx * 4]);
            const float pa[4] = {p.x, p.y, p.z, p.w};
            const float qb[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += pa[i] * qb[j];
        }
        __syncthreads();
    }

    const int col = col0 + tx * 4;
    if (col >= N)
        return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + ty * 4 + i;
        if (row < M)
            *reinterpret_cast<uint2 *>(y + size_t(row) * N + col) =
                make_uint2(narrow(sum[i][0], sum[i][1]), narrow(sum[i][2], sum[i][3]));
    }
}
