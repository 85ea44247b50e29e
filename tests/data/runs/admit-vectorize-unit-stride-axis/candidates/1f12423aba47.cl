/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes one element of c, with 16 partial sums along k, the unit-stride axis of a and b.
__kernel void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    __global const float *pa = a + (long)row * K;
    __global const float *pb = b + (long)col * K;
    int full = K / 16 * 16;

    float16 sums = (float16)(0.0f);
    for (int k = 0; k < full; k += 16)
        sums += vload16(0, pa + k) * vload16(0, pb + k);

    // The tail, element by element.
    float tail = 0.0f;
    for (int k = full; k < K; ++k)
        tail += pa[k] * pb[k];

    float8 s8 = sums.lo + sums.hi;
    float4 s4 = s8.lo + s8.hi;
    float2 s2 = s4.lo + s4.hi;
    c[(long)row * N + col] = s2.x + s2.y + tail;
}
