/*klineage
surface = "cuda"

[[workspace]]
name = "part"
dtype = "f32"
shape = ["M", "N"]

[[launch]]
kernel = "first"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "part", "int M", "int N", "int K"]

[[launch]]
kernel = "second"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "part", "c", "int M", "int N", "int K"]
pdl = true
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two launches, of which the second begins while the first ends, and waits for it before it reads.

extern "C" __global__ void first(const float *a, const float *b, float *part, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    asm volatile("griddepcontrol.launch_dependents;");
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K / 2; ++k)
        sum += a[row * K + k] * b[k * N + col];
    part[row * N + col] = sum;
}

extern "C" __global__ void second(const float *a, const float *b, const float *part, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    float sum = 0.0f;
    for (int k = K / 2; k < K && row < M && col < N; ++k)
        sum += a[row * K + k] * b[k * N + col];
    asm volatile("griddepcontrol.wait;" : : : "memory");
    if (row < M && col < N)
        c[row * N + col] = sum + reinterpret_cast<const volatile float *>(part)[row * N + col];
}
