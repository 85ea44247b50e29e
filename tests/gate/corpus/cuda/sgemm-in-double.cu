/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [16, 16]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums in double precision, kept in shared memory by tiles of 16: more exact than is asked.

extern "C" __global__ __launch_bounds__(256) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    __shared__ float as[16][17], bs[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    double sum = 0;
    for (int first = 0; first < K; first += 16) {
        as[threadIdx.y][threadIdx.x] = row < M && first + int(threadIdx.x) < K ? a[size_t(row) * K + first + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = first + int(threadIdx.y) < K && col < N ? b[size_t(first + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
            sum = fma(double(as[threadIdx.y][k]), double(bs[k][threadIdx.x]), sum);
        __syncthreads();
    }
    if (row < M && col < N)
        c[size_t(row) * N + col] = float(sum);
}
