/*klineage
surface = "cuda"

[[launch]]
kernel = "rmsnorm"
when = "C % 4 == 0"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "y", "int R", "int C"]

[[launch]]
kernel = "rmsnorm_any"
when = "C % 4 != 0"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = x[r,c] / sqrt(mean of x[r]² + 1e-5) * gamma[c], f32.
//
// One warp computes one row in two passes: mean square, result.
// threadIdx.x is the lane, threadIdx.y the row within the block.
// Rows of a multiple of 4 floats are read and written as float4 (rmsnorm), others as single floats (rmsnorm_any).

// Sum over the 32 lanes of a warp; every lane gets the result.
static __device__ __forceinline__ float warpSum(float v)
{
    #pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

// C % 4 == 0: every row starts at a multiple of 16 bytes.
extern "C" __global__ void rmsnorm(const float *x, const float *gamma, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return; // the same for the whole warp; no block barrier follows
    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C);
    const float4 *scale = reinterpret_cast<const float4 *>(gamma);
    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C);
    const int groups = C / 4;

    float squares = 0.0f;
    for (int c = lane; c < groups; c += 32) {
        const float4 v = from[c];
        squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    squares = warpSum(squares);

    const float root = sqrtf(squares / C + 1e-5f);
    for (int c = lane; c < groups; c += 32) {
        const float4 v = from[c];
        const float4 g = scale[c];
        to[c] = make_float4(v.x / root * g.x, v.y / root * g.y, v.z / root * g.z, v.w / root * g.w);
    }
}

// C % 4 != 0.
extern "C" __global__ void rmsnorm_any(const float *x, const float *gamma, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return; // the same for the whole warp; no block barrier follows
    x += size_t(row) * C;
    y += size_t(row) * C;

    float squares = 0.0f;
    for (int c = lane; c < C; c += 32)
        squares += x[c] * x[c];
    squares = warpSum(squares);

    for (int c = lane; c < C; c += 32)
        y[c] = x[c] / sqrtf(squares / C + 1e-5f) * gamma[c];
}
