/*klineage
surface = "cuda"

[[launch]]
kernel = "rmsnorm_registers"
when = "C % 4 == 0 && C <= 1024"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "y", "int R", "int C"]

[[launch]]
kernel = "rmsnorm"
when = "C % 4 != 0 || C > 1024"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = x[r,c] / sqrt(mean of x[r]² + 1e-5) * gamma[c], f32.
//
// One warp computes one row. Rows of at most 1024 columns, a multiple of four, are read once, by
// streaming loads, and kept in registers; other rows are computed in two passes: mean square, result.
// threadIdx.x is the lane, threadIdx.y the row within the block.

// Sum over the 32 lanes of a warp; every lane gets the result.
static __device__ __forceinline__ float warpSum(float v)
{
    #pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

// float4 a lane: 32 * 8 * 4 = 1024 columns at most, the bound in the launch conditions.
constexpr int VECTORS = 8;

// 128 threads, 8 blocks a multiprocessor: at most 64 registers a thread.
extern "C" __global__ void __launch_bounds__(128, 8)
rmsnorm_registers(const float *x, const float *gamma, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return; // the same for the whole warp; no block barrier follows

    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C) + lane;
    const float4 *scale = reinterpret_cast<const float4 *>(gamma) + lane;
    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C) + lane;
    const int mine = C / 4 - lane; // float4 of the row from this lane on

    // The only read of the row; the loads are independent. 0 adds nothing to the sum of squares.
    // No element of x is used again, so its lines are the first to be evicted (ld.global.cs);
    // gamma is shared by all rows and keeps plain loads.
    float4 v[VECTORS];
    #pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        v[i] = 32 * i < mine ? __ldcs(from + 32 * i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float squares = 0.0f;
    #pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        squares += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
    squares = warpSum(squares);

    const float root = sqrtf(squares / C + 1e-5f);

    #pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (32 * i < mine) {
            const float4 g = scale[32 * i];
            to[32 * i] = make_float4(v[i].x / root * g.x, v[i].y / root * g.y,
                                     v[i].z / root * g.z, v[i].w / root * g.w);
        }
    }
}

// Rows that do not fit the registers above, or are no multiple of four long.
// Both passes read x, so its loads stay plain.
extern "C" __global__ void rmsnorm(const float *x, const float *gamma, float *y, int R, int C)
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
