/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
when = "C <= 1024"
grid = ["R"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C > 1024"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// A block owns a row, which it reduces in pieces of 8 elements. A warp owns a piece (violated: 8 of its 32 lanes have an
// element), and combines the lanes by a walk over shared memory.

constexpr int ROWS = 4; // rows, and so warps, a block

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
    __shared__ float tops[128], sums[128];
    __shared__ float lanes[4][32];
    const int lane = threadIdx.x, thread = threadIdx.y * 32 + lane;
    x += size_t(blockIdx.x) * C;
    y += size_t(blockIdx.x) * C;

    // Maximum and sum of the pieces.
    const int pieces = (C + 7) / 8;
    for (int piece = threadIdx.y; piece < pieces; piece += 4) {
        const int c = 8 * piece + lane;
        const bool works = lane < 8 && c < C;
        const float v = works ? x[c] : negativeInfinity();
        lanes[threadIdx.y][lane] = v;
        __syncwarp();
        float top = lanes[threadIdx.y][0];
        for (int i = 1; i < 32; ++i)
            top = fmaxf(top, lanes[threadIdx.y][i]);
        __syncwarp();
        lanes[threadIdx.y][lane] = works && top > negativeInfinity() ? expf(v - top) : 0.0f;
        __syncwarp();
        float sum = 0.0f;
        for (int i = 0; i < 32; ++i)
            sum += lanes[threadIdx.y][i];
        __syncwarp();
        if (lane == 0) {
            tops[piece] = top;
            sums[piece] = sum;
        }
    }
    __syncthreads();

    // Every warp combines the pieces.
    float top = negativeInfinity();
    for (int i = lane; i < pieces; i += 32)
        top = fmaxf(top, tops[i]);
    top = warpMax(top);
    float sum = 0.0f;
    for (int i = lane; i < pieces; i += 32)
        sum += sums[i] * expf(tops[i] - top);
    sum = warpSum(sum);
    for (int c = thread; c < C; c += 128)
        y[c] = expf(x[c] - top) / sum;
}

// Longer rows: a warp a row, three passes over it.
extern "C" __global__ void softmax_any(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);
    top = warpMax(top);
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += expf(x[c] - top);
    sum = warpSum(sum);
    for (int c = lane; c < C; c += 32)
        y[c] = expf(x[c] - top) / sum;
}
