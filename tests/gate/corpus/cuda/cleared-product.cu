/*klineage
surface = "cuda"

[[workspace]]
name = "store"
dtype = "u32"
shape = ["2 * (M * N + 32)"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "store", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One thread computes one element and adds it to a cleared workspace; another one is compared with it.

// The tile of this block of a · b.
__device__ float element(const float *a, const float *b, int row, int col, int N, int K)
{
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    return sum;
}

extern "C" __global__ void product(const float *a, const float *b, float *c, unsigned *store, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && col < N)
        c[row * N + col] = __uint_as_float(store[row * N + col]) + element(a, b, row, col, N, K);
}
