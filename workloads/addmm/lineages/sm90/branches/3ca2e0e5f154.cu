/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] + bias[N], bf16 in and out, f32 sums. One thread owns eight neighbouring elements of a row
// of y and walks K alone: b, bias and y move in chunks of 16 bytes, and a scalar of a serves eight products.
// N is a multiple of 8, so that every chunk is aligned and lies wholly inside a row.

#include <cuda_bf16.h>

// The two bf16 of a 32-bit word as f32: the first element lies in the low half.
__device__ __forceinline__ float low_float(unsigned int word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float high_float(unsigned int word)
{
    return __uint_as_float(word & 0xffff0000u);
}

__device__ __forceinline__ unsigned int pack(float low, float high)
{
    const unsigned int low_bits = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned int high_bits = __bfloat16_as_ushort(__float2bfloat16(high));
    return low_bits | (high_bits << 16);
}

extern "C" __global__ void multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias,
                                    __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = (blockIdx.x * 32 + threadIdx.x) * 8; // first of the eight
    if (row >= M || col >= N)
        return;

    float sum[8] = {};
    for (int k = 0; k < K; ++k) {
        const float value = __bfloat162float(a[size_t(row) * K + k]);
        const uint4 chunk = *reinterpret_cast<const uint4 *>(b + size_t(k) * N + col);
        sum[0] += value * low_float(chunk.x);
        sum[1] += value * high_float(chunk.x);
        sum[2] += value * low_float(chunk.y);
        sum[3] += value * high_float(chunk.y);
        sum[4] += value * low_float(chunk.z);
        sum[5] += value * high_float(chunk.z);
        sum[6] += value * low_float(chunk.w);
        sum[7] += value * high_float(chunk.w);
    }

    const uint4 shift = *reinterpret_cast<const uint4 *>(bias + col);
    uint4 result;
    result.x = pack(sum[0] + low_float(shift.x), sum[1] + high_float(shift.x));
    result.y = pack(sum[2] + low_float(shift.y), sum[3] + high_float(shift.y));
    result.z = pack(sum[4] + low_float(shift.z), sum[5] + high_float(shift.z));
    result.w = pack(sum[6] + low_float(shift.w), sum[7] + high_float(shift.w));
    *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = result;
}
