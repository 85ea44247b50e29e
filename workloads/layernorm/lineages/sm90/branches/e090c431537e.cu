/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm_registers"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C % 4 == 0 && C <= 1024"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
when = "C % 4 != 0 || C > 1024"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A warp a row. Rows that fit are read once into registers, and mean, variance and result are taken from there; other rows are
// passed over three times: mean, variance, result. The lanes' sums meet in shared memory.

// float4 a lane: 32 * 8 * 4 = 1024 columns at most, the bound in the launch conditions. Change both together.
constexpr int VECTORS = 8;

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

// C is a multiple of 4 and at most 128 * VECTORS. At most 64 registers a thread: 8 blocks a multiprocessor.
extern "C" __global__ void __launch_bounds__(128, 8)
    layernorm_registers(const float *__restrict__ x, const float *__restrict__ gamma, const float *__restrict__ beta,
                        float *__restrict__ y, int R, int C)
{
    __shared__ float lanes[4][32];
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C) + lane;
    const float4 *scales = reinterpret_cast<const float4 *>(gamma) + lane;
    const float4 *shifts = reinterpret_cast<const float4 *>(beta) + lane;
    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C) + lane;
    const int mine = C / 4 - lane; // float4 of the row from this lane on

    // Each element of x is loaded here and nowhere else: streaming loads, whose lines leave the caches first. gamma and beta are
    // shared by all rows and keep plain loads.
    float4 v[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        v[i] = 32 * i < mine ? __ldcs(from + 32 * i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    const float mean = warpSum(sum, lanes[threadIdx.y]) / C;

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        if (32 * i < mine) { // past the end of the row the distance from the mean would count
            v[i].x -= mean;
            v[i].y -= mean;
            v[i].z -= mean;
            v[i].w -= mean;
            squares += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
        }
    const float deviation = sqrtf(warpSum(squares, lanes[threadIdx.y]) / C + 1e-5f);

#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        if (32 * i < mine) {
            const float4 scale = scales[32 * i];
            const float4 shift = shifts[32 * i];
            to[32 * i] = make_float4(v[i].x / deviation * scale.x + shift.x, v[i].y / deviation * scale.y + shift.y,
                                     v[i].z / deviation * scale.z + shift.z, v[i].w / deviation * scale.w + shift.w);
        }
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
