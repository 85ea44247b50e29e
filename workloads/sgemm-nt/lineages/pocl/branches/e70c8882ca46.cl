/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["4", "4"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes an 8 x 8 block of c, whose sums stay in registers: a float8 for each row of the block.
__kernel void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = (int)get_global_id(0) * 8;
    int row = (int)get_global_id(1) * 8;
    if (row >= M || col >= N)
        return;

    if (M < 8 || N < 8) {
        // Too small to slide back: one output after another.
        int rowEnd = min(row + 8, M);
        int colEnd = min(col + 8, N);
        for (int i = row; i < rowEnd; ++i) {
            for (int j = col; j < colEnd; ++j) {
                float sum = 0.0f;
                for (int k = 0; k < K; ++k)
                    sum += a[(long)i * K + k] * b[(long)j * K + k];
                c[(long)i * N + j] = sum;
            }
        }
        return;
    }

    // Edge: slide back over the neighbour and store its values again.
    row = min(row, M - 8);
    col = min(col, N - 8);

    long K1 = K;
    long K2 = 2 * K1;
    long K3 = 3 * K1;
    __global const float *pa = a + (long)row * K1;
    __global const float *pc = pa + 4 * K1;
    __global const float *pb = b + (long)col * K1;
    __global const float *pd = pb + 4 * K1;

    float8 s0 = (float8)(0.0f);
    float8 s1 = (float8)(0.0f);
    float8 s2 = (float8)(0.0f);
    float8 s3 = (float8)(0.0f);
    float8 s4 = (float8)(0.0f);
    float8 s5 = (float8)(0.0f);
    float8 s6 = (float8)(0.0f);
    float8 s7 = (float8)(0.0f);

    for (int k = 0; k < K; ++k) {
        // Eight columns, loaded once for eight rows.
        float8 bk = (float8)(pb[0], pb[K1], pb[K2], pb[K3],
                             pd[0], pd[K1], pd[K2], pd[K3]);
        s0 += pa[0] * bk;
        s1 += pa[K1] * bk;
        s2 += pa[K2] * bk;
        s3 += pa[K3] * bk;
        s4 += pc[0] * bk;
        s5 += pc[K1] * bk;
        s6 += pc[K2] * bk;
        s7 += pc[K3] * bk;
        ++pa;
        ++pc;
        ++pb;
        ++pd;
    }

    __global float *out = c + (long)row * N + col;
    vstore8(s0, 0, out);
    vstore8(s1, 0, out + (long)N);
    vstore8(s2, 0, out + 2 * (long)N);
    vstore8(s3, 0, out + 3 * (long)N);
    vstore8(s4, 0, out + 4 * (long)N);
    vstore8(s5, 0, out + 5 * (long)N);
    vstore8(s6, 0, out + 6 * (long)N);
    vstore8(s7, 0, out + 7 * (long)N);
}
