/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 12
values = [4, 6, 8, 12, 16]

[[launch]]
kernel = "multiply_add"
when = "M >= MR && N >= 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, MR)"]
block = ["1", "1"]
args = ["a", "b", "bias", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_add_small"
when = "M < MR || N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "bias", "c", "int M", "int N", "int K"]
*/

// MR, a tunable: rows of c that a work-item computes. MR sums, the row of b and a broadcast of a must fit the
// vector registers together: 12 + 2 of the 32 of AVX-512.

// One work-item computes MR rows of 16 columns of c. The 16 are neighbours in b and in c: a float16, as
// wide as a vector register of AVX-512 (two of AVX), loads, multiplies, adds and stores them at once. An
// element of b is loaded once for MR rows, and the MR sums do not wait for each other. A work-group is
// one tile.
__kernel void multiply_add(__global const float *restrict a, __global const float *restrict b,
                           __global const float *restrict bias, __global float *restrict c, int M, int N,
                           int K)
{
    int col = get_global_id(0) * 16;
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);  // the last tile slides back and repeats rows and columns of its neighbour
    col = min(col, N - 16);
    a += row * K;
    b += col;
    c += row * N + col;

    float16 sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float16 bk = vload16(0, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
    float16 added = vload16(0, bias + col);
#pragma unroll
    for (int i = 0; i < MR; ++i)
        vstore16(sum[i] + added, 0, c + i * N);
}

// For matrices smaller than a tile: one work-item computes one element.
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
