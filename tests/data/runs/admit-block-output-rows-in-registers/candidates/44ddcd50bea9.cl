/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 8
values = [2, 4, 8, 12]

[[launch]]
kernel = "sgemm_nt_rows"
when = "M >= MR"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16 * MR)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_nt"
when = "M < MR"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes MR rows of one column of c. Needs M >= MR.
__kernel void sgemm_nt_rows(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = (int)get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
    row = min(row, M - MR);     // the last tile slides back and stores its neighbour's values again

    long pitch = K;
    __global const float *pa = a + (long)row * pitch;
    __global const float *pb = b + (long)col * pitch;

    float sum[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float bk = pb[k];       // loaded once for MR rows
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += pa[i * pitch + k] * bk;
    }
#pragma unroll
    for (int i = 0; i < MR; ++i)
        c[(long)(row + i) * N + col] = sum[i];
}

// One work-item computes one element of c: for fewer rows than a tile has.
__kernel void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[col * K + k];
    c[row * N + col] = sum;
}
