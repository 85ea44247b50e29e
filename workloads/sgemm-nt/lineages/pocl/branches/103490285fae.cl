/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 12
values = [4, 6, 8, 12, 16]

[[tunable]]
name = "NR"
default = 8
values = [4, 8]

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 8 * NR)", "ceil_div(M, 2 * MR)"]
block = ["8", "2"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// A row of the register tile is one vector of NR sums.
// Budget in vector registers: MR sums + 1 vector of b + 1 broadcast of a = 12 + 2.
#if NR == 8
typedef float8 row_t;
#define LOAD_B(p, k) ((float8)((p)[0][k], (p)[1][k], (p)[2][k], (p)[3][k], \
                               (p)[4][k], (p)[5][k], (p)[6][k], (p)[7][k]))
#define STORE_ROW(v, p) vstore8((v), 0, (p))
#else
typedef float4 row_t;
#define LOAD_B(p, k) ((float4)((p)[0][k], (p)[1][k], (p)[2][k], (p)[3][k]))
#define STORE_ROW(v, p) vstore4((v), 0, (p))
#endif

// One work-item computes a patch of MR rows and NR columns of c, its sums in registers.
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

    row_t sum[MR];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
        sum[i] = (row_t)(0.0f);

    for (int k = 0; k < K; ++k) {
        row_t bk = LOAD_B(pb, k);
        #pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += pa[i][k] * bk;
    }

    #pragma unroll
    for (int i = 0; i < MR; ++i) {
        float out[NR];
        STORE_ROW(sum[i], out);
        #pragma unroll
        for (int j = 0; j < NR; ++j)
            c[min(row + i, M - 1) * N + min(col + j, N - 1)] = out[j];
    }
}
