/*klineage
surface = "opencl"

[[launch]]
kernel = "multiply_add"
when = "N >= 16"
grid = ["ceil_div(N, 16)", "M"]
block = ["1", "1"]
args = ["a", "b", "bias", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_add_small"
when = "N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "bias", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// c = a · b + bias, all row-major; bias is added to every row.
//
// One work-item computes 16 columns of a row of c. The 16 are neighbours in b and in c: a float16, as
// wide as a vector register of AVX-512, loads, multiplies, adds and stores them at once. A
// work-group is one work-item.
__kernel void multiply_add(__global const float *restrict a, __global const float *restrict b,
                           __global const float *restrict bias, __global float *restrict c, int M, int N,
                           int K)
{
    int col = get_global_id(0) * 16;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    col = min(col, N - 16);  // the last work-item of a row slides back and repeats columns of its neighbour
    a += row * K;
    b += col;
    c += row * N + col;

    float16 sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float16 bk = vload16(0, b + k * N);
        sum += a[k] * bk;
    }
    vstore16(sum + vload16(0, bias + col), 0, c);
}

// For matrices narrower than a vector: one work-item computes one element.
__kernel void multiply_add_small(__global const float *restrict a, __global const float *restrict b,
                                 __global const float *restrict bias, __global float *restrict c, int M, int N,
                                 int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum + bias[col];
}
