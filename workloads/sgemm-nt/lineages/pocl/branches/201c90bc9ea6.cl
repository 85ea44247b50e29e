/*klineage
surface = "opencl"

[[tunable]]
name = "MR"
default = 8
values = [4, 6, 8, 12]

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16)", "ceil_div(M, MR)"]
block = ["16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// MR, the rows of the register tile, is a tunable of the plan: the grid divides M by it.

// One work-item computes one column of c for MR rows: products of rows of a with one row of b, 16 elements at a time. The sums
// stay in registers: every loop over the rows has a constant bound and is unrolled.
__kernel void sgemm_nt(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int n = get_global_id(0);
    int m0 = get_global_id(1) * MR;
    if (n >= N)
        return;
    b += n * K;
    __global const float *rows[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        rows[i] = a + min(m0 + i, M - 1) * K;

    float16 sums[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
        sums[i] = 0.0f;
    int k = 0;
    for (; k + 16 <= K; k += 16) {
        float16 right = vload16(0, b + k);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sums[i] = fma(vload16(0, rows[i] + k), right, sums[i]);
    }

    float totals[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i) {
        float8 half8 = sums[i].lo + sums[i].hi;
        float4 half4 = half8.lo + half8.hi;
        float2 half2 = half4.lo + half4.hi;
        totals[i] = half2.x + half2.y;
    }
    for (; k < K; ++k) {
        float last = b[k];
#pragma unroll
        for (int i = 0; i < MR; ++i)
            totals[i] += rows[i][k] * last;
    }
#pragma unroll
    for (int i = 0; i < MR; ++i) {
        if (m0 + i < M)
            c[(m0 + i) * N + n] = totals[i];
    }
}
