/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["4", "M", "N"]

[[workspace]]
name = "arrived"
dtype = "u32"
shape = ["ceil_div(N, 32) * ceil_div(M, 8)"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "4"]
block = ["32", "8"]
args = ["a", "b", "c", "parts", "arrived", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The last of four blocks to arrive adds up their parts; the others have arrived long before they write their parts.

extern "C" __global__ void product(const float *a, const float *b, float *c, float *parts, unsigned *arrived, int M, int N,
                                   int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    const bool inside = row < M && col < N;
    __shared__ unsigned before;
    if (threadIdx.x == 0 && threadIdx.y == 0)
        before = atomicAdd(arrived + blockIdx.y * gridDim.x + blockIdx.x, 1u);
    __syncthreads();
    if (before != 3)
        __nanosleep(2000);
    float sum = 0.0f;
    for (int k = blockIdx.z; inside && k < K; k += 4)
        sum += a[row * K + k] * b[k * N + col];
    if (inside)
        parts[(blockIdx.z * M + row) * N + col] = sum;
    __syncthreads();
    if (before != 3 || !inside)
        return;
    float total = 0.0f;
    for (int part = 0; part < 4; ++part)
        total += parts[(part * M + row) * N + col];
    c[row * N + col] = total;
}
