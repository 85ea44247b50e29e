/*klineage
surface = "opencl"

[[tunable]]
name = "MR"                      # rows of c that a work-item computes
default = 24
values = [24]

[[launch]]
kernel = "sgemm"
when = "M >= MR && N >= 32"
grid = ["ceil_div(N, 16 * 32)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "M < MR || N < 32"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// Violated: a row of the tile is two registers wide, as a float16 is where registers have half the width, so that
// its sums take 48 registers of 32.
// One work-item computes MR rows of 32 columns of c. The 32 are neighbours in b and in c: two float16,
// each as wide as a vector register of AVX-512, load, multiply, add and store them at once. An
// element of b is loaded once for MR rows, and the MR sums do not wait for each other.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * 32;
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);  // the last tile slides back and repeats rows and columns of its neighbour
    col = min(col, N - 32);
    a += row * K;
    b += col;
    c += row * N + col;

    float16 sum[MR], more[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = more[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float16 bk = vload16(0, b + k * N);
        float16 bm = vload16(1, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            sum[i] += a[i * K + k] * bk;
            more[i] += a[i * K + k] * bm;
        }
    }
#pragma unroll
    for (int i = 0; i < MR; ++i) {
        vstore16(sum[i], 0, c + i * N);
        vstore16(more[i], 1, c + i * N);
    }
}

// For matrices smaller than a tile: one work-item computes one element.
__kernel void sgemm_small(__global const float *restrict a, __global const float *restrict b,
                          __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
