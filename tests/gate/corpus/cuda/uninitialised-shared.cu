/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
shared = "4 * 256"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds to shared memory that an earlier launch may have left at any value.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    extern __shared__ float total[];
    const int mine = threadIdx.y * 32 + threadIdx.x;
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    for (int k = 0; k < K; ++k)
        total[mine] += a[row * K + k] * b[k * N + col];
    c[row * N + col] = total[mine];
}
