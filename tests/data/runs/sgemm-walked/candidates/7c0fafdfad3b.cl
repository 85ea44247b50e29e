/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm"
grid = ["ceil_div(N, 4)", "M"]
block = ["1", "1"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// One work-item computes four neighbouring elements of a row of c, in a float4. A work-group is one work-item.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * 4;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    __global const float *arow = a + (size_t)row * K;
    if (col + 4 <= N) {
        __global const float *bcol = b + col;
        const size_t stride = (size_t)N;
        float4 sum = (float4)(0.0f);
        for (int k = 0; k < K; ++k) {
            sum += arow[k] * vload4(0, bcol);
            bcol += stride;
        }
        vstore4(sum, 0, c + (size_t)row * N + col);
    } else {
        // The last N % 4 columns, one by one.
        for (; col < N; ++col) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += arow[k] * b[k * N + col];
            c[row * N + col] = sum;
        }
    }
}
