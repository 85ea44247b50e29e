/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["128"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One block of 4 warps owns a row and passes over it three times, an element a lane and step.

__device__ float negativeInfinity()
{
    return __int_as_float(0xff800000);
}

// Every lane gets the result, without shared memory or a barrier.
__device__ float warpMax(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, mask));
    return v;
}

__device__ float warpSum(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(0xffffffff, v, mask);
    return v;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    // Violated: the reductions below end at the warp, there is no step between the 4 warps of the row.
    const int row = blockIdx.x, lane = threadIdx.x;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 128)
        top = fmaxf(top, x[c]);
    top = warpMax(top);
    float sum = 0.0f;
    for (int c = lane; c < C; c += 128)
        sum += expf(x[c] - top);
    sum = warpSum(sum);
    for (int c = lane; c < C; c += 128)
        y[c] = expf(x[c] - top) / sum;
}
