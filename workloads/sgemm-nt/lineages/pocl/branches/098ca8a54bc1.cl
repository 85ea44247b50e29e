/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 6
values = [4, 6, 8, 12]

[[tunable]]
name = "NR"
default = 2
values = [1, 2, 3, 4]

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16 * NR)", "ceil_div(M, MR)"]
block = ["16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// MR and NR, the rows and columns of the register tile, are tunables of the plan: the grid divides M and N by them.
// Registers: MR * NR sums, NR vectors of b and one of a.

// One work-item computes MR rows by NR columns of c: products of rows of a with rows of b, 16 elements at a time. The sums
// stay in registers: every loop over the tile has a constant bound and is unrolled.
__kernel void sgemm_nt(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int n0 = get_global_id(0) * NR;
    int m0 = get_global_id(1) * MR;
    if (n0 >= N)
        return;
    __global const float *rows[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        rows[i] = a + min(m0 + i, M - 1) * K;
    __global const float *cols[NR];
#pragma unroll
    for (int j = 0; j < NR; ++j)
        cols[j] = b + min(n0 + j, N - 1) * K;

    float16 sums[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; ++i) {
#pragma unroll
        for (int j = 0; j < NR; ++j)
            sums[i][j] = 0.0f;
    }
    int k = 0;
    for (; k + 16 <= K; k += 16) {
        float16 right[NR];
#pragma unroll
        for (int j = 0; j < NR; ++j)
            right[j] = vload16(0, cols[j] + k);
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            float16 left = vload16(0, rows[i] + k);
#pragma unroll
            for (int j = 0; j < NR; ++j)
                sums[i][j] = fma(left, right[j], sums[i][j]);
        }
    }

    float totals[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; ++i) {
#pragma unroll
        for (int j = 0; j < NR; ++j) {
            float8 half8 = sums[i][j].lo + sums[i][j].hi;
            float4 half4 = half8.lo + half8.hi;
            float2 half2 = half4.lo + half4.hi;
            totals[i][j] = half2.x + half2.y;
        }
    }
    for (; k < K; ++k) {
        float last[NR];
#pragma unroll
        for (int j = 0; j < NR; ++j)
            last[j] = cols[j][k];
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            float first = rows[i][k];
#pragma unroll
            for (int j = 0; j < NR; ++j)
                totals[i][j] += first * last[j];
        }
    }
#pragma unroll
    for (int i = 0; i < MR; ++i) {
#pragma unroll
        for (int j = 0; j < NR; ++j) {
            if (m0 + i < M && n0 + j < N)
                c[(m0 + i) * N + n0 + j] = totals[i][j];
        }
    }
}
