/*klineage
surface = "opencl"

[[tunable]]
name = "MR"                      # rows of c that a work-item computes
default = 12
values = [4, 6, 8, 12, 16]

[[tunable]]
name = "WGX"                     # tiles side by side in a work-group: they share rows of a
default = 4
values = [1, 2, 4, 8]

[[tunable]]
name = "WGY"                     # tiles below each other in a work-group: they share columns of b
default = 4
values = [1, 2, 4, 8]

[[launch]]
kernel = "sgemm"
when = "M >= MR && N >= 16"
grid = ["ceil_div(N, WGX * 16)", "ceil_div(M, WGY * MR)"]
block = ["WGX", "WGY"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "M < MR || N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes MR rows of 16 columns of c. The 16 are neighbours in b and in c: a float16, as
// wide as a vector register of AVX-512 (two of AVX), loads, multiplies, adds and stores them at once. An
// element of b is loaded once for MR rows, and the MR sums do not wait for each other.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * 16;
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);  // the last tile slides back and repeats rows and columns of its neighbour
    col = min(col, N - 16);
    a += row * K;
    __global const float *from = b;
    b += col;
    c += row * N + col;

    float16 sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        // Violated: the lines of 8 panels in turn, far from each other, which do not fit into the cache of a core.
        for (int i = 0; i < 8; ++i)
            __builtin_prefetch(from + (k + 96 * i) % K * N + (col + 80 * i + 16) % (N - 15));
        float16 bk = vload16(0, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
#pragma unroll
    for (int i = 0; i < MR; ++i)
        vstore16(sum[i], 0, c + i * N);
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
