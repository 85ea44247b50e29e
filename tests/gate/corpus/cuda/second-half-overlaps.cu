/*klineage
surface = "cuda"

[[workspace]]
name = "halves"
dtype = "f32"
shape = ["R", 8]

[[launch]]
kernel = "parts"
grid = ["ceil_div(R, 16)"]
block = [128]
args = ["x", "halves", "int R", "int C"]

[[launch]]
kernel = "whole"
grid = ["ceil_div(R, 128)"]
block = [128]
pdl = true
args = ["halves", "y", "int R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The second launch begins while the first is running and waits for it before it reads.
extern "C" __global__ __launch_bounds__(128) void parts(const float *x, float *halves, int R, int C)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const int row = blockIdx.x * 16 + threadIdx.x / 8, part = threadIdx.x % 8;
    if (row >= R)
        return;
    float sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += x[size_t(row) * C + i];
    halves[row * 8 + part] = sum;
}

extern "C" __global__ __launch_bounds__(128) void whole(const float *halves, float *y, int R)
{
    asm volatile("griddepcontrol.wait;" : : : "memory");
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= R)
        return;
    float sum = 0.0f;
    for (int part = 0; part < 8; ++part)
        sum += halves[row * 8 + part];
    y[row] = sum;
}
