/*klineage
surface = "opencl"

[[tunable]]
name = "MR"                      # rows of c that a work-item computes
default = 4
values = [2, 4, 8]

[[launch]]
kernel = "sgemm"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]

*/

// Violates a precondition on purpose, to probe a risk of the card block-outputs-in-registers: The tile of 4 rows takes
// matrices of fewer than 4 rows too, so that the row to which the last tile slides back is negative.

// One work-item computes MR elements of a column of c: each element of b is loaded once for MR rows, and
// the MR sums do not wait for each other.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);  // the last tile slides back and repeats rows of its neighbour
    a += row * K;
    b += col;
    c += row * N + col;

    float sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float bk = b[k * N];
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
#pragma unroll
    for (int i = 0; i < MR; ++i)
        c[i * N] = sum[i];
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
