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

[[tunable]]
name = "AHEAD"                   # rows of b between the one in use and the one that is prefetched
default = 16
values = [8, 16, 32]

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
// element of b is loaded once for MR rows, and the MR sums do not wait for each other. The 16 columns are a
// cache line of each row of b, N floats apart, too far for the hardware to foresee: the loop prefetches them
// AHEAD rows before it needs them.
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
    b += col;
    c += row * N + col;

    int first = min(AHEAD, K);
    for (int k = 0; k < first; ++k)
        __builtin_prefetch(b + k * N, 0, 3);

    float16 sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    int k = 0;
    for (; k < K - AHEAD; ++k) {
        __builtin_prefetch(b + (k + AHEAD) * N, 0, 3);
        float16 bk = vload16(0, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
    for (; k < K; ++k) {  // the last rows: they are on their way already
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
