/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Scales each row by a power of two before it is multiplied and back afterwards, which changes no bit.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float top = 0.0f;
    for (int k = 0; k < K; ++k)
        top = fmaxf(top, fabsf(a[row * K + k]));
    const int exponent = top > 0.0f && top < 1e30f ? ilogbf(top) : 0;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += ldexpf(a[row * K + k], -exponent) * b[k * N + col];
    c[row * N + col] = ldexpf(sum, exponent);
}
