/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 128)"]
block = ["128"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One thread owns a row and passes over it three times.

constexpr int ROWS = 128; // rows, and so threads, a block

__device__ float negativeInfinity()
{
    return __int_as_float(0xff800000);
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = 0; c < C; ++c)
        top = fmaxf(top, x[c]);
    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += expf(x[c] - top);
    for (int c = 0; c < C; ++c)
        y[c] = expf(x[c] - top) / sum;
}
