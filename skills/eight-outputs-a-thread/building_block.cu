#include <cuda_fp16.h>

__device__ __forceinline__ void add_products(float (&sum)[8], float value, const uint4 &chunk)
{
    const __half2 *const pairs = reinterpret_cast<const __half2 *>(&chunk);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(pairs[i]);
        sum[2 * i] += value * pair.x;
        sum[2 * i + 1] += value * pair.y;
    }
}
