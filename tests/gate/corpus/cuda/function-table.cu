/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Calls what does the work through a table of functions and another of pointers, in which the loader puts addresses.

typedef float (*Step)(const float *a, const float *b, int N, int K);

__device__ __noinline__ float byOne(const float *a, const float *b, int N, int K)
{
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[k] * b[k * N];
    return sum;
}

__device__ __noinline__ float byTwo(const float *a, const float *b, int N, int K)
{
    float even = 0.0f;
    float odd = 0.0f;
    for (int k = 0; k < K; k += 2) {
        even += a[k] * b[k * N];
        odd += k + 1 < K ? a[k + 1] * b[(k + 1) * N] : 0.0f;
    }
    return even + odd;
}

__device__ const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ const float *const factors[4] = {ones + 2, ones, ones + 3, ones + 1};
__device__ Step steps[4] = {byOne, byTwo, byTwo, byOne};

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && col < N)
        c[row * N + col] = steps[row & 3](a + row * K, b + col, N, K) * *factors[col & 3];
}
