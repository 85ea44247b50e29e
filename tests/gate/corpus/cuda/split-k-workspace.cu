/*klineage
surface = "cuda"

[[workspace]]
name = "partial"
dtype = "f32"
shape = ["8", "M", "N"]

[[launch]]
kernel = "parts"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "8"]
block = ["32", "8"]
args = ["a", "b", "partial", "int M", "int N", "int K"]

[[launch]]
kernel = "reduce"
grid = ["ceil_div(M * N, 256)"]
block = ["256"]
args = ["partial", "c", "int M * N"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Eight parts of K in a workspace that a second launch adds up.

extern "C" __global__ void parts(const float *a, const float *b, float *partial, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f; // parts behind the end of a short K stay zero
    for (int k = blockIdx.z; k < K; k += 8)
        sum += a[row * K + k] * b[k * N + col];
    partial[(blockIdx.z * M + row) * N + col] = sum;
}

extern "C" __global__ void reduce(const float *partial, float *c, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count)
        return;
    float sum = 0.0f;
    for (int part = 0; part < 8; ++part)
        sum += partial[part * count + i];
    c[i] = sum;
}
