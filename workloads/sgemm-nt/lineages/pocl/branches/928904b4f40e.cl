/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

#define MR 4

// One work-item computes one column of c for MR rows: products of rows of a with one row of b, 16 elements at a time. The sums
// stay in registers.
__kernel void sgemm_nt(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int n = get_global_id(0);
    int m0 = get_global_id(1) * MR;
    if (n >= N)
        return;
    b += n * K;
    __global const float *rows[MR];
    for (int i = 0; i < MR; ++i)
        rows[i] = a + min(m0 + i, M - 1) * K;

    float16 sums[MR];
    for (int i = 0; i < MR; ++i)
        sums[i] = 0.0f;
    int k = 0;
    for (; k + 16 <= K; k += 16) {
        float16 right = vload16(0, b + k);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sums[i] = fma(vload16(0, rows[i] + k), right, sums[i]);
    }
    for (int i = 0; i < MR && m0 + i < M; ++i) {
        float8 half8 = sums[i].lo + sums[i].hi;
        float4 half4 = half8.lo + half8.hi;
        float2 half2 = half4.lo + half4.hi;
        float sum = half2.x + half2.y;
        for (int rest = k; rest < K; ++rest)
            sum += rows[i][rest] * b[rest];
        c[(m0 + i) * N + n] = sum;
    }
}
