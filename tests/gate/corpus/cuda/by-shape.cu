/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
when = "M * N >= 4096"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "few"
when = "M * N < 4096"
grid = ["M * N"]
block = ["32"]
args = ["a", "b", "c", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes another path for small outputs than for large ones; both are right for any shape.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

extern "C" __global__ void few(const float *a, const float *b, float *c, int N, int K)
{
    const int row = blockIdx.x / N, col = blockIdx.x % N;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < K; k += 32)
        sum += a[row * K + k] * b[k * N + col];
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0)
        c[blockIdx.x] = sum;
}
