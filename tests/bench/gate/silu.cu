/*klineage
surface = "cuda"

[[launch]]
kernel = "silu"
grid = ["min(sm_count * 8, ceil_div(R * C, 1024))"]
block = ["256"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One wave of blocks that stride over the tensor. A delay of so many cycles can be planted at the end of each block.

#define DELAY 0

__device__ float gated(float v)
{
    return v / (1.0f + __expf(-v));
}

extern "C" __global__ void silu(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int count = R * C;
    const int stride = gridDim.x * blockDim.x;
    const int fours = count / 4;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < fours; i += stride) {
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        v = {gated(v.x), gated(v.y), gated(v.z), gated(v.w)};
        reinterpret_cast<float4 *>(y)[i] = v;
    }
    for (int i = fours * 4 + blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        y[i] = gated(x[i]);
    if (DELAY > 0) {
        __syncthreads();
        for (const long long end = clock64() + DELAY; clock64() < end;)
            ;
    }
}
