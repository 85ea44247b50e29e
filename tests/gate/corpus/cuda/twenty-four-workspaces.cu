/*klineage
surface = "cuda"

[[workspace]]
name = "w0"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w1"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w2"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w3"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w4"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w5"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w6"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w7"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w8"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w9"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w10"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w11"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w12"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w13"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w14"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w15"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w16"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w17"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w18"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w19"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w20"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w21"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w22"
dtype = "f32"
shape = ["R"]

[[workspace]]
name = "w23"
dtype = "f32"
shape = ["R"]

[[launch]]
kernel = "parts"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13", "w14", "w15", "w16", "w17", "w18", "w19", "w20", "w21", "w22", "w23", "int R", "int C"]

[[launch]]
kernel = "joins"
grid = ["ceil_div(R, 128)"]
block = [128]
args = ["y", "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13", "w14", "w15", "w16", "w17", "w18", "w19", "w20", "w21", "w22", "w23", "int R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Twenty-four sums of each row, each in a workspace of its own; a second launch adds them up.
extern "C" __global__ __launch_bounds__(128) void parts(const float *x, float *w0, float *w1, float *w2, float *w3, float *w4, float *w5, float *w6, float *w7, float *w8, float *w9, float *w10, float *w11, float *w12, float *w13, float *w14, float *w15, float *w16, float *w17, float *w18, float *w19, float *w20, float *w21, float *w22, float *w23, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R || lane >= 24)
        return;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 24)
        sum += x[size_t(row) * C + i];
    float *const to[24] = {w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16, w17, w18, w19, w20, w21, w22, w23};
#pragma unroll
    for (int i = 0; i < 24; ++i)
        if (i == lane)
            to[i][row] = sum;
}

extern "C" __global__ __launch_bounds__(128) void joins(float *y, const float *w0, const float *w1, const float *w2, const float *w3, const float *w4, const float *w5, const float *w6, const float *w7, const float *w8, const float *w9, const float *w10, const float *w11, const float *w12, const float *w13, const float *w14, const float *w15, const float *w16, const float *w17, const float *w18, const float *w19, const float *w20, const float *w21, const float *w22, const float *w23, int R)
{
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= R)
        return;
    const float *const from[24] = {w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, w16, w17, w18, w19, w20, w21, w22, w23};
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 24; ++i)
        sum += from[i][row];
    y[row] = sum;
}
