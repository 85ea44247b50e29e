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

[[launch]]
kernel = "maxima"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "tops", "int R", "int C"]

[[launch]]
kernel = "adds"
grid = ["ceil_div(R, 4)"]
block = [128]
pdl = true
args = ["x", "tops", "sums", "int R", "int C"]

[[launch]]
kernel = "divides"
grid = ["ceil_div(R, 4)"]
block = [128]
pdl = true
args = ["x", "tops", "sums", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three launches, each of which asks for its input and then waits for the whole of the one before; that one has waited itself, so that the third finds what the first has made.

#define LETS_THE_NEXT_BEGIN asm volatile("griddepcontrol.launch_dependents;" : : : "memory")
#define WAITS asm volatile("griddepcontrol.wait;" : : : "memory")

extern "C" __global__ __launch_bounds__(128) void maxima(const float *x, float *tops, int R, int C)
{
    LETS_THE_NEXT_BEGIN;
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, x[size_t(row) * C + i]);
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (lane == 0)
        tops[row] = top;
}

extern "C" __global__ __launch_bounds__(128) void adds(const float *x, const float *tops, float *sums, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float first = row < R && lane < C ? x[size_t(row) * C + lane] : 0.0f;
    WAITS;
    LETS_THE_NEXT_BEGIN;
    if (row >= R)
        return;
    const float top = *reinterpret_cast<const volatile float *>(tops + row);
    float sum = lane < C ? expf(first - top) : 0.0f;
    for (int i = lane + 32; i < C; i += 32)
        sum += expf(x[size_t(row) * C + i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0)
        sums[row] = sum;
}

extern "C" __global__ __launch_bounds__(128) void divides(const float *x, const float *tops, const float *sums, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    WAITS;
    if (row >= R)
        return;
    const float top = *reinterpret_cast<const volatile float *>(tops + row), sum = *reinterpret_cast<const volatile float *>(sums + row);
    for (int i = lane; i < C; i += 32)
        y[size_t(row) * C + i] = expf(x[size_t(row) * C + i] - top) / sum;
}
