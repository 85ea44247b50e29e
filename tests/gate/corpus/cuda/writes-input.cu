/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "scale"
grid = ["ceil_div(M * K, 256)"]
block = ["256"]
args = ["a", "int M * K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Scales an operand in place after the result is made.

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

extern "C" __global__ void scale(float *a, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        a[i] *= 0.5f;
}
