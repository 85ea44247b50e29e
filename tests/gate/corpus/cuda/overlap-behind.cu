/*klineage
surface = "cuda"

[[launch]]
kernel = "first"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "second"
grid = ["1"]
block = ["1"]
args = []
pdl = true
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// An empty second launch overlaps the first and ends before it, so that the next run might begin too early.

extern "C" __global__ void first(const float *a, const float *b, float *c, int M, int N, int K)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}

extern "C" __global__ void second()
{
}
