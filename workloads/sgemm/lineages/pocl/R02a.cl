/*klineage
surface = "opencl"

[[tunable]]
name = "MR"                      # rows of c that a work-item computes
default = 4
values = [2, 4, 8]

[[launch]]
kernel = "sgemm"
when = "M >= MR"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "M < MR"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes MR elements of a column of c: sixteen steps of k are taken at once, as one float16
// of partial sums a row, which is summed up at the end. A vector of b is gathered from sixteen rows.
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

    float16 partial[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        partial[i] = 0.0f;
    int k = 0;
    for (; k + 16 <= K; k += 16) {
        __global const float *bk = b + k * N;
        float16 column = (float16)(bk[0], bk[N], bk[2 * N], bk[3 * N], bk[4 * N], bk[5 * N], bk[6 * N],
                                   bk[7 * N], bk[8 * N], bk[9 * N], bk[10 * N], bk[11 * N], bk[12 * N],
                                   bk[13 * N], bk[14 * N], bk[15 * N]);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            partial[i] += vload16(0, a + i * K + k) * column;
    }
    float sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i) {
        float8 half8 = partial[i].lo + partial[i].hi;
        float4 half4 = half8.lo + half8.hi;
        sum[i] = half4.x + half4.y + half4.z + half4.w;
    }
    for (; k < K; ++k) {
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
