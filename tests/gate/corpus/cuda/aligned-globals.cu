/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = [32, 8]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of the module that are aligned to a kibibyte, with gaps between them, as a copy engine would want them: it reads them and no gap.

__device__ __align__(1024) float even[4] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ __align__(1024) float odd[4] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ __align__(1024) float nothing[4];

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    const float factor = (row % 2 == 0 ? even : odd)[col % 4];
    c[row * N + col] = sum * factor + nothing[col % 4];
}
