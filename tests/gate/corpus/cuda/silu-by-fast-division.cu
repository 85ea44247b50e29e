/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// With the fast division and exponential: where the exponential overflows the quotient is zero, as it has to be.

typedef unsigned long long u64;

__device__ __forceinline__ float silu(float v)
{
    return __fdividef(v, 1.0f + expf(-v));
}

// 4096 elements a block.
__device__ __forceinline__ void work(const float *x, float *y, int count)
{
    const int first = blockIdx.x * 4096 + threadIdx.x;
#pragma unroll 4
    for (int i = first; i < first + 4096; i += 256)
        if (i < count)
            y[i] = silu(x[i]);
}

extern "C" __global__ void activate(const float *x, float *y, int count)
{
    work(x, y, count);
}
