/*klineage
surface = "opencl"

[[tunable]]
name = "MR"                      # rows of c that a work-item computes
default = 4
values = [2, 4, 8]

[[launch]]
kernel = "sgemm"
when = "M >= MR && N >= 4"
grid = ["ceil_div(N, 16 * 4)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 0", "int K / 2"]

[[launch]]
kernel = "sgemm"
when = "M >= MR && N >= 4"
grid = ["ceil_div(N, 16 * 4)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K", "int K / 2", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "M < MR || N < 4"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// Violates a precondition on purpose, to probe a risk of the card vectorize-unit-stride-axis: Two launches take half
// of k each and the second adds to c, while the last work-items slide back over their neighbours.

// One work-item computes MR rows of four columns of c. The four are neighbours in b and in c: a float4
// loads, multiplies, adds and stores them at once. An element of b is loaded once for MR rows, and the MR
// sums do not wait for each other.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K, int kBegin, int kEnd)
{
    int col = get_global_id(0) * 4;
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);  // the last tile slides back and repeats rows and columns of its neighbour
    col = min(col, N - 4);
    a += row * K;
    b += col;
    c += row * N + col;

    float4 sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = kBegin == 0 ? 0.0f : vload4(0, c + i * N);
    for (int k = kBegin; k < kEnd; ++k) {
        float4 bk = vload4(0, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
#pragma unroll
    for (int i = 0; i < MR; ++i)
        vstore4(sum[i], 0, c + i * N);
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
