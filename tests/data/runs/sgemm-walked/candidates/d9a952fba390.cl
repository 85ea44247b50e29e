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

    if (col + 4 <= N) {
        float4 sum = (float4)(0.0f);
        for (int k = 0; k < K; ++k)
            sum += a[row * K + k] * vload4(0, b + k * N + col);
        vstore4(sum, 0, c + row * N + col);
    } else {
        // The last N % 4 columns, one by one.
        for (; col < N; ++col) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += a[row * K + k] * b[k * N + col];
            c[row * N + col] = sum;
        }
    }
}
