/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 6
values = [2, 4, 6, 8, 12]

[[tunable]]
name = "NR"
default = 4
values = [2, 4]

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 8 * NR)", "ceil_div(M, 8 * MR)"]
block = ["8", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes a patch of MR rows and NR columns of c, its sums in registers.
// Budget in vector registers: MR * NR sums + NR values of b + 1 of a <= 32, so 24 + 4 + 1.
__kernel void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * NR;
    int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;

    // Edge: an index past the end repeats the last row or column; the same value is stored again.
    __global const float *pa[MR];
    __global const float *pb[NR];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
        pa[i] = a + min(row + i, M - 1) * K;
    #pragma unroll
    for (int j = 0; j < NR; ++j)
        pb[j] = b + min(col + j, N - 1) * K;

    float sum[MR][NR];
    #pragma unroll
    for (int i = 0; i < MR; ++i) {
        #pragma unroll
        for (int j = 0; j < NR; ++j)
            sum[i][j] = 0.0f;
    }

    for (int k = 0; k < K; ++k) {
        float bk[NR];
        #pragma unroll
        for (int j = 0; j < NR; ++j)
            bk[j] = pb[j][k];
        #pragma unroll
        for (int i = 0; i < MR; ++i) {
            float ak = pa[i][k];
            #pragma unroll
            for (int j = 0; j < NR; ++j)
                sum[i][j] += ak * bk[j];
        }
    }

    #pragma unroll
    for (int i = 0; i < MR; ++i) {
        #pragma unroll
        for (int j = 0; j < NR; ++j)
            c[min(row + i, M - 1) * N + min(col + j, N - 1)] = sum[i][j];
    }
}
