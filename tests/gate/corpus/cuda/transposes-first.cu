/*klineage
surface = "cuda"

[[workspace]]
name = "bt"
dtype = "f32"
shape = ["K * N"]

[[launch]]
kernel = "transpose"
grid = ["ceil_div(K * N, 256)"]
block = [256]
args = ["b", "bt", "int N", "int K"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 32)"]
block = ["8", "32"]
pdl = true
args = ["a", "bt", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Transposes b into a workspace first; the product begins while that ends, and waits for it before it reads.

extern "C" __global__ void transpose(const float *b, float *bt, int N, int K)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N * K)
        bt[i % N * K + i / N] = b[i];
}
extern "C" __global__ void product(const float *a, const float *bt, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = fmaf(a[row * K + k], bt[col * K + k], sum);
    c[row * N + col] = sum;
}
