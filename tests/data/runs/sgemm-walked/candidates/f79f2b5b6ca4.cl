/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm"
when = "N >= 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["1", "1"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes 16 columns of 4 rows of c. The 16 are neighbours in b and in c: a float16, as
// wide as a vector register of AVX-512 (two of AVX), loads, multiplies, adds and stores them at once. The
// 4 rows share each float16 of b, and their sums are four independent chains in registers. A work-group is
// one work-item.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * 16;
    int row = get_global_id(1) * 4;
    if (row >= M || col >= N)
        return;
    col = min(col, N - 16);  // the last work-item of a row slides back and repeats columns of its neighbour
    // Where fewer than 4 rows are left, the work-item repeats the last one.
    int row1 = min(row + 1, M - 1);
    int row2 = min(row + 2, M - 1);
    int row3 = min(row + 3, M - 1);
    __global const float *a0 = a + row * K;
    __global const float *a1 = a + row1 * K;
    __global const float *a2 = a + row2 * K;
    __global const float *a3 = a + row3 * K;
    b += col;
    c += col;

    float16 sum0 = 0.0f;
    float16 sum1 = 0.0f;
    float16 sum2 = 0.0f;
    float16 sum3 = 0.0f;
    for (int k = 0; k < K; ++k) {
        float16 bk = vload16(0, b + k * N);
        sum0 += a0[k] * bk;
        sum1 += a1[k] * bk;
        sum2 += a2[k] * bk;
        sum3 += a3[k] * bk;
    }
    vstore16(sum0, 0, c + row * N);
    vstore16(sum1, 0, c + row1 * N);
    vstore16(sum2, 0, c + row2 * N);
    vstore16(sum3, 0, c + row3 * N);
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
