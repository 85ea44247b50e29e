/*klineage
surface = "cuda"

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 0"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 16"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 32"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 48"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 64"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 80"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 96"]

[[launch]]
kernel = "rows"
when = "R == 128 && C == 256"
grid = [4]
block = [128]
args = ["x", "y", "int C", "int 112"]

[[launch]]
kernel = "softmax"
when = "!(R == 128 && C == 256)"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Eight launches of sixteen rows each, a warp a row: the parent of another.

__device__ __forceinline__ void softmaxRow(const float *in, float *out, int C)
{
    const int lane = threadIdx.x % 32;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        sum += expf(in[i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    for (int i = lane; i < C; i += 32)
        out[i] = expf(in[i] - top) / sum;
}

extern "C" __global__ __launch_bounds__(128) void rows(const float *x, float *y, int C, int first)
{
    const size_t at = size_t(first + blockIdx.x * 4 + threadIdx.x / 32) * C;
    softmaxRow(x + at, y + at, C);
}

// Any other shape.
extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row < R)
        softmaxRow(x + size_t(row) * C, y + size_t(row) * C, C);
}
