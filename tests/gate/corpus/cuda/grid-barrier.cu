/*klineage
surface = "cuda"

[[workspace]]
name = "tops"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "sums"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "arrived"
dtype = "i32"
shape = ["1"]
init = "zero"

[[launch]]
kernel = "softmax"
cooperative = true
grid = ["min(sm_count, ceil_div(R, 4))"]
block = ["32", "4"]
args = ["x", "y", "tops", "sums", "arrived", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A cooperative launch: sums, a barrier of the whole grid over a cleared workspace, then the division.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// One warp a row.
__device__ float warpMax(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warpSum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

__device__ void rowSum(const float *x, int row, int C, int lane, float *tops, float *sums)
{
    float top = -INFINITY;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, x[i]);
    top = warpMax(top);
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        sum += expf(x[i] - top);
    sum = warpSum(sum);
    if (lane == 0) {
        tops[row] = top;
        sums[row] = sum;
    }
}

extern "C" __global__ void softmax(const float *x, float *y, float *tops, float *sums, int *arrived, int R,
                                   int C)
{
    const int lane = threadIdx.x;
    for (int row = blockIdx.x * 4 + threadIdx.y; row < R; row += gridDim.x * 4)
        rowSum(x + row * C, row, C, lane, tops, sums);

    __threadfence();
    __syncthreads();
    if (lane == 0 && threadIdx.y == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < int(gridDim.x))
            __nanosleep(20);
    }
    __syncthreads();

    // Rows that another block summed.
    for (int row = (gridDim.x - 1 - blockIdx.x) * 4 + threadIdx.y; row < R; row += gridDim.x * 4)
        for (int i = lane; i < C; i += 32)
            y[row * C + i] = expf(x[row * C + i] - __ldcg(tops + row)) / __ldcg(sums + row);
}
