/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C % 4 == 0"

[[launch]]
kernel = "layernorm_any"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C % 4 != 0"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A warp a row, three passes over it: mean, variance, result. The lanes' sums meet in shared memory.
// Rows whose length is a multiple of 4 are read and written as float4; others one float at a time.

__device__ float warpSum(float value, float *shared)
{
    shared[threadIdx.x] = value;
    __syncwarp();
    float sum = 0.0f;
    for (int lane = 0; lane < 32; ++lane)
        sum += shared[lane];
    __syncwarp();
    return sum;
}

// C % 4 == 0
extern "C" __global__ void layernorm(const float *__restrict__ x, const float *__restrict__ gamma,
                                     const float *__restrict__ beta, float *__restrict__ y, int R, int C)
{
    __shared__ float lanes[4][32];
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    const float4 *__restrict__ from = reinterpret_cast<const float4 *>(x + size_t(row) * C);
    const float4 *__restrict__ scale = reinterpret_cast<const float4 *>(gamma);
    const float4 *__restrict__ shift = reinterpret_cast<const float4 *>(beta);
    float4 *__restrict__ to = reinterpret_cast<float4 *>(y + size_t(row) * C);
    const int quads = C / 4;

    float sum = 0.0f;
    for (int c = lane; c < quads; c += 32) {
        const float4 v = from[c];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    const float mean = warpSum(sum, lanes[threadIdx.y]) / C;

    float squares = 0.0f;
    for (int c = lane; c < quads; c += 32) {
        const float4 v = from[c];
        const float dx = v.x - mean;
        const float dy = v.y - mean;
        const float dz = v.z - mean;
        const float dw = v.w - mean;
        squares += (dx * dx + dy * dy) + (dz * dz + dw * dw);
    }
    const float deviation = sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

    for (int c = lane; c < quads; c += 32) {
        const float4 v = from[c];
        const float4 g = scale[c];
        const float4 b = shift[c];
        to[c] = make_float4((v.x - mean) / deviation * g.x + b.x,
                            (v.y - mean) / deviation * g.y + b.y,
                            (v.z - mean) / deviation * g.z + b.z,
                            (v.w - mean) / deviation * g.w + b.w);
    }
}

// C % 4 != 0
extern "C" __global__ void layernorm_any(const float *__restrict__ x, const float *__restrict__ gamma,
                                         const float *__restrict__ beta, float *__restrict__ y, int R, int C)
{
    __shared__ float lanes[4][32];
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += x[c];
    const float mean = warpSum(sum, lanes[threadIdx.y]) / C;

    float squares = 0.0f;
    for (int c = lane; c < C; c += 32)
        squares += (x[c] - mean) * (x[c] - mean);
    const float deviation = sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

    for (int c = lane; c < C; c += 32)
        y[c] = (x[c] - mean) / deviation * gamma[c] + beta[c];
}
