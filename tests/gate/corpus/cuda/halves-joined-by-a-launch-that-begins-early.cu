/*klineage
surface = "cuda"

[[workspace]]
name = "halves"
dtype = "f32"
shape = ["2", "R"]

[[launch]]
kernel = "halves_of_rows"
grid = ["ceil_div(R, 4)", 2]
block = [128]
args = ["x", "halves", "int R", "int C"]

[[launch]]
kernel = "joins"
grid = ["ceil_div(R, 128)"]
block = [128]
pdl = true
args = ["halves", "y", "int R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Halves of rows, then their sums by a launch that begins early and waits for the whole of the first.
#define LETS_THE_NEXT_BEGIN asm volatile("griddepcontrol.launch_dependents;" : : : "memory")
#define WAITS asm volatile("griddepcontrol.wait;" : : : "memory")

extern "C" __global__ __launch_bounds__(128) void halves_of_rows(const float *x, float *halves, int R, int C)
{
    LETS_THE_NEXT_BEGIN;
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const int begin = blockIdx.y == 0 ? 0 : C / 2, end = blockIdx.y == 0 ? C / 2 : C;
    float sum = 0.0f;
    for (int i = begin + lane; i < end; i += 32)
        sum += x[size_t(row) * C + i];
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0)
        halves[size_t(blockIdx.y) * R + row] = sum;
}

extern "C" __global__ __launch_bounds__(128) void joins(const float *halves, float *y, int R)
{
    WAITS;
    const int row = blockIdx.x * 128 + threadIdx.x;
    const volatile float *from = halves;
    if (row < R)
        y[row] = from[row] + from[R + row];
}
