/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt_vec"
when = "N >= 16"
grid = ["ceil_div(N, 64)", "ceil_div(M, 16)"]
block = ["4", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_nt"
when = "N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes 16 neighbouring columns of a row of c. Needs N >= 16.
__kernel void sgemm_nt_vec(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = (int)get_global_id(0) * 16;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    col = min(col, N - 16);     // the last vector slides back and stores its neighbour's values again

    long k1 = K;
    long k2 = 2 * k1;
    long k3 = 3 * k1;
    __global const float *pa = a + (long)row * k1;
    __global const float *p0 = b + (long)col * k1;
    __global const float *p1 = p0 + 4 * k1;
    __global const float *p2 = p0 + 8 * k1;
    __global const float *p3 = p0 + 12 * k1;

    float16 sum = (float16)(0.0f);
    for (int k = 0; k < K; ++k) {
        float16 bk = (float16)(p0[0], p0[k1], p0[k2], p0[k3],
                               p1[0], p1[k1], p1[k2], p1[k3],
                               p2[0], p2[k1], p2[k2], p2[k3],
                               p3[0], p3[k1], p3[k2], p3[k3]);
        sum += pa[k] * bk;      // a: the same for all columns
        ++p0;
        ++p1;
        ++p2;
        ++p3;
    }
    vstore16(sum, 0, c + (long)row * N + col);
}

// One work-item computes one element of c: for rows narrower than a vector.
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
