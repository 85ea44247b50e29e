/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A warp a row, three passes over it: mean, variance, result. The lanes' sums meet in shared memory.
// The division by the standard deviation is a multiplication by its reciprocal, taken once a row.

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

extern "C" __global__ void layernorm(const float *__restrict__ x, const float *__restrict__ gamma,
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
    const float scale = 1.0f / sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

    for (int c = lane; c < C; c += 32)
        y[c] = (x[c] - mean) * scale * gamma[c] + beta[c];
}
