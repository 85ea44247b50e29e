/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 64)", "ceil_div(T, 64) + G"]
block = ["256"]
args = ["a", "b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 64x64 tile of one group from f32 slabs in shared memory, 4x4 sums a thread; still missing are the tensor cores, larger
// register tiles and any overlap of loading with arithmetic.

#include <cuda_bf16.h>

constexpr int BM = 64;
constexpr int BN = 64;
constexpr int BK = 16;
constexpr int PAD = 4; // floats, keeps every row of a slab at 16 bytes

// Eight bf16 as they lie in memory, to f32.
__device__ __forceinline__ void widen(const uint4 &v, float *out)
{
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        out[2 * i] = __uint_as_float(words[i] << 16);
        out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

extern "C" __global__ void __launch_bounds__(256) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                           __nv_bfloat16 *y, int G, int N, int K)
{
    __shared__ __align__(16) float As[BK][BM + PAD]; // transposed: k, then row
    __shared__ __align__(16) float Bs[BK][BN + PAD];

    // The grid has room for one part-filled tile a group: find the tile of this block, or leave. The answer is the same for the whole block.
    int tile = blockIdx.y;
    int group = 0, first = 0, end = 0;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles) {
            first = lo + tile * BM;
            end = hi;
            break;
        }
        tile -= tiles;
    }
    if (group == G)
        return;
    b += size_t(group) * K * N;

    const int t = threadIdx.x;
    const int col0 = blockIdx.x * BN;
    const int tx = t % 16;
    const int ty = t / 16;

    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            sum[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += BK) {
        // Each half of the block brings one slab, 8 elements a thread. N and K are multiples of 8: a vector is all inside or all outside.
        uint4 v = make_uint4(0u, 0u, 0u, 0u);
        float f[8];
        if (t < 128) {
            const int r = t / 2;
            const int k = (t % 2) * 8;
            if (first + r < end && k0 + k < K)
                v = *reinterpret_cast<const uint4 *>(a + size_t(first + r) * K + k0 + k);
            widen(v, f);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                As[k + i][r] = f[i];
        } else {
            const int k = (t - 128) / 8;
            const int c = (t % 8) * 8;
            if (k0 + k < K && col0 + c < N)
                v = *reinterpret_cast<const uint4 *>(b + size_t(k0 + k) * N + col0 + c);
            widen(v, f);
            *reinterpret_cast<float4 *>(&Bs[k][c]) = make_float4(f[0], f[1], f[2], f[3]);
            *reinterpret_cast<float4 *>(&Bs[k][c + 4]) = make_float4(f[4], f[5], f[6], f[7]);
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float4 av = *reinterpret_cast<const float4 *>(&As[k][ty * 4]);
            const float4 bv = *reinterpret_cast<const float4 *>(&Bs[k][tx * 4]);
            const float x[4] = {av.x, av.y, av.z, av.w};
            const float w[4] = {bv.x, bv.y, bv.z, bv.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i][j] = fmaf(x[i], w[j], sum[i][j]);
        }
        __syncthreads();
    }

    const int col = col0 + tx * 4;
    if (col >= N)
        return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first + ty * 4 + i;
        if (row < end)
            *reinterpret_cast<uint2 *>(y + size_t(row) * N + col) =
                make_uint2(narrow(sum[i][0], sum[i][1]), narrow(sum[i][2], sum[i][3]));
    }
}
