/*klineage
surface = "cuda"

[[launch]]
kernel = "layernormRegisters"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C <= 1024"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C > 1024"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A warp a row. Rows of at most 1024 columns are read once, into registers, on which mean, variance and result are computed;
// longer ones take three passes. The lanes' sums meet in shared memory.

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

// Elements a lane: 32 * 32 = 1024 columns at most, as the launch conditions say.
constexpr int ELEMENTS = 32;

extern "C" __global__ void __launch_bounds__(128, 8)
    layernormRegisters(const float *__restrict__ x, const float *__restrict__ gamma, const float *__restrict__ beta,
                       float *__restrict__ y, int R, int C)
{
    __shared__ float lanes[4][32];
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C + lane;
    y += size_t(row) * C + lane;
    gamma += lane;
    beta += lane;
    const int mine = C - lane; // columns of the row from this lane's first on

    float v[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        v[i] = 32 * i < mine ? x[32 * i] : 0.0f;

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        sum += v[i];
    const float mean = warpSum(sum, lanes[threadIdx.y]) / C;

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i) {
        v[i] = 32 * i < mine ? v[i] - mean : 0.0f;
        squares += v[i] * v[i];
    }
    const float deviation = sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        v[i] = v[i] / deviation;

#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        if (32 * i < mine)
            y[32 * i] = v[i] * gamma[32 * i] + beta[32 * i];
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
    const float deviation = sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

    for (int c = lane; c < C; c += 32)
        y[c] = (x[c] - mean) / deviation * gamma[c] + beta[c];
}
