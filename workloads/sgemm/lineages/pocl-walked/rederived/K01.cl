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
#pragma OPENCL FP_CONTRACT ON
    const int col = (int)get_global_id(0) * 4;
    const int row = get_global_id(1);

    if (row < M && col + 4 <= N) {
        __global const float *pa = a + (size_t)row * K;
        __global const float *const pa_end = pa + K;
        __global const float *pb = b + col;
        const size_t stride = (size_t)N;
        float4 sum = (float4)(0.0f);
        for (; pa != pa_end; ++pa, pb += stride)
            sum += (float4)(*pa) * vload4(0, pb);
        vstore4(sum, 0, c + (size_t)row * N + col);
    } else if (row < M) {
        // The last N % 4 columns, one by one.
        for (int j = col; j < N; ++j) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += a[row * K + k] * b[k * N + j];
            c[row * N + j] = sum;
        }
    }
}
