/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
pdl = true
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Asks that each run overlap the one before, by a programmatic dependent launch that never waits.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    asm volatile("griddepcontrol.launch_dependents;");
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
