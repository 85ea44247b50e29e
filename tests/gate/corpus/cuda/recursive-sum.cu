/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = [32, 8]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds in pairs by a function that calls itself: a stack whose depth the compiler cannot tell, and which is as deep as log2(K / 64).

__device__ __noinline__ float part(const float *a, const float *b, int N, int from, int to)
{
    if (to - from <= 64) {
        float sum = 0.0f;
        for (int k = from; k < to; ++k)
            sum += a[k] * b[k * N];
        return sum;
    }
    const int middle = (from + to) / 2;
    const float left = part(a, b, N, from, middle);
    return left + part(a, b, N, middle, to);
}

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && col < N)
        c[row * N + col] = part(a + row * K, b + col, N, 0, K);
}
