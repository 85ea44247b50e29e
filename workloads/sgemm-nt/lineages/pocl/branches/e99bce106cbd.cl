/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 32)", "M"]
block = ["32"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes one element: the product of a row of a and a row of b, sixteen elements of both at a time,
// which is one AVX-512 register of each.
__kernel void sgemm_nt(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    int n = get_global_id(0);
    int m = get_global_id(1);
    if (n >= N)
        return;
    a += m * K;
    b += n * K;

    float16 sums = 0.0f;
    int k = 0;
    for (; k + 16 <= K; k += 16)
        sums += vload16(0, a + k) * vload16(0, b + k);
    float8 eight = sums.lo + sums.hi;
    float4 four = eight.lo + eight.hi;
    float sum = (four.x + four.y) + (four.z + four.w);
    for (; k < K; ++k)
        sum += a[k] * b[k];
    c[m * N + n] = sum;
}
