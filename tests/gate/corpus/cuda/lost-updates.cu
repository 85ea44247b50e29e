/*klineage
surface = "cuda"

[[launch]]
kernel = "clear"
grid = ["ceil_div(M * N, 256)"]
block = ["256"]
args = ["c", "int M * N"]

[[launch]]
kernel = "product"
grid = ["8 * ceil_div(M * N, 64)"]
block = ["64"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks add their parts of K to the output without atomics.

extern "C" __global__ void clear(float *c, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        c[i] = 0.0f;
}

extern "C" __global__ void product(const float *a, const float *b, volatile float *c, int M, int N, int K)
{
    const int part = blockIdx.x % 8;
    const int i = blockIdx.x / 8 * 64 + threadIdx.x;
    if (i >= M * N)
        return;
    const int row = i / N, col = i % N;
    float sum = 0.0f;
    for (int k = part; k < K; k += 8)
        sum += a[row * K + k] * b[k * N + col];
    c[i] = c[i] + sum;
}
