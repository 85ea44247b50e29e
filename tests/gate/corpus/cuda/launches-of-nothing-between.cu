/*klineage
surface = "cuda"

[[workspace]]
name = "rows"
dtype = "f32"
shape = ["R", "C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "exponentials"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "rows", "int R", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "nothing"
grid = [1]
block = [32]
args = ["rows", "int C"]

[[launch]]
kernel = "quotients"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["rows", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two launches that work and eight of nothing between and before them, as a plan that was cut down leaves them: slow, and right.

__device__ __forceinline__ float over(float v, bool isMax)
{
    for (int other = 16; other > 0; other /= 2) {
        const float w = __shfl_xor_sync(0xffffffffu, v, other);
        v = isMax ? fmaxf(v, w) : v + w;
    }
    return v;
}

extern "C" __global__ void nothing(const float *, int) {}

extern "C" __global__ __launch_bounds__(128) void exponentials(const float *x, float *rows, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    top = over(top, true);
    for (int i = lane; i < C; i += 32)
        rows[size_t(row) * C + i] = expf(in[i] - top);
}

extern "C" __global__ __launch_bounds__(128) void quotients(const float *rows, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const float *in = rows + size_t(row) * C;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        sum += in[i];
    sum = over(sum, false);
    for (int i = lane; i < C; i += 32)
        y[size_t(row) * C + i] = in[i] / sum;
}
