/*klineage
surface = "cuda"

[[launch]]
kernel = "clear"
grid = ["ceil_div(M * N, 256)"]
block = ["256"]
args = ["c", "int M * N"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "8"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Eight parts of K added to the output with atomics: the order of additions, and so the last bit, is not
// fixed.

extern "C" __global__ void clear(float *c, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        c[i] = 0.0f;
}

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += 8)
        sum += a[row * K + k] * b[k * N + col];
    atomicAdd(c + row * N + col, sum);
}
