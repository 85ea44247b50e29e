/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 32)", "M"]
block = ["32"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes one element: the product of a row of a and a row of b, sixteen elements of both at a time: a float16 is one
// AVX-512 register. What remains of K is taken four at a time, then one by one.
__kernel void sgemm_nt(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int n = get_global_id(0);
    int m = get_global_id(1);
    if (n >= N)
        return;
    a += m * K;
    b += n * K;

    float16 wide = 0.0f;
    int k = 0;
    for (; k + 16 <= K; k += 16)
        wide += vload16(0, a + k) * vload16(0, b + k);
    float8 half_sums = wide.lo + wide.hi;
    float4 sums = half_sums.lo + half_sums.hi;
    for (; k + 4 <= K; k += 4)
        sums += vload4(0, a + k) * vload4(0, b + k);
    float sum = (sums.x + sums.y) + (sums.z + sums.w);
    for (; k < K; ++k)
        sum += a[k] * b[k];
    c[m * N + n] = sum;
}
