/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One warp owns a row and passes over it three times, an element a lane and step.

constexpr int ROWS = 4; // rows, and so warps, a block

__device__ float negativeInfinity()
{
    return __int_as_float(0xff800000);
}

// Every lane gets the result: it walks over the values of all lanes in shared memory.
__device__ float warpMax(float v, volatile float *partial)
{
    partial[threadIdx.x] = v;
    __syncwarp();
    v = negativeInfinity();
    for (int i = 0; i < 32; ++i)
        v = fmaxf(v, partial[i]);
    __syncwarp();
    return v;
}

__device__ float warpSum(float v, volatile float *partial)
{
    partial[threadIdx.x] = v;
    __syncwarp();
    v = 0.0f;
    for (int i = 0; i < 32; ++i)
        v += partial[i];
    __syncwarp();
    return v;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    __shared__ float partial[ROWS][32]; // a value a lane
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);
    top = warpMax(top, partial[threadIdx.y]);
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += expf(x[c] - top);
    sum = warpSum(sum, partial[threadIdx.y]);
    for (int c = lane; c < C; c += 32)
        y[c] = expf(x[c] - top) / sum;
}
