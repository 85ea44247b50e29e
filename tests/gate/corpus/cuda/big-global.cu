/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = [32, 8]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has a variable of 72 MiB, which the file holds none of. The gate reads no more than 64 MiB of variables (cubinglobals.cpp: mostBytes), and ends
// with an error of its own in place of a verdict (compilestage.cpp: globals.error()), which ends a run of a corpus too.

__device__ unsigned char reserve[72 << 20];

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum + float(reserve[(row * N + col) % (72 << 20)]);
}
