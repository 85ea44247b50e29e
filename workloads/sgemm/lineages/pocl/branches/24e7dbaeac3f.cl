/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm"
when = "N >= 4"
grid = ["ceil_div(N, 4)", "M"]
block = ["1", "1"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "N < 4"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// Violates a precondition on purpose, to probe a risk of the card vectorize-unit-stride-axis: Rows of b and c are
// accessed through dereferenced pointers to float4, where N is no multiple of 4.

// One work-item computes 4 columns of a row of c. The 4 are neighbours in b and in c: a float4, as
// wide as a vector register of SSE, loads, multiplies, adds and stores them at once. A
// work-group is one work-item.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0) * 4;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    col = min(col, N - 4);  // the last work-item of a row slides back and repeats columns of its neighbour
    a += row * K;
    b += col;
    c += row * N + col;

    float4 sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float4 bk = *(__global const float4 *)(b + k * N);
        sum += a[k] * bk;
    }
    *(__global float4 *)c = sum;
}

// For matrices smaller than a tile: one work-item computes one element.
__kernel void sgemm_small(__global const float *restrict a, __global const float *restrict b,
                          __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
