/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16) * ceil_div(M, 16)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four products of bytes an instruction, an element a thread.

extern "C" __global__ __launch_bounds__(256) void product(const signed char *x, const signed char *weight, int *y, int M, int N, int K)
{
    const int across = (N + 15) / 16, row = blockIdx.x / across * 16 + threadIdx.x / 16, col = blockIdx.x % across * 16 + threadIdx.x % 16;
    if (row >= M || col >= N)
        return;
    int sum = 0;
#pragma unroll 2
    for (int k = 0; k < K; k += 16) {
        const int4 a = *reinterpret_cast<const int4 *>(x + size_t(row) * K + k), b = *reinterpret_cast<const int4 *>(weight + size_t(col) * K + k);
        sum = __dp4a(a.x, b.x, sum);
        sum = __dp4a(a.y, b.y, sum);
        sum = __dp4a(a.z, b.z, sum);
        sum = __dp4a(a.w, b.w, sum);
    }
    y[size_t(row) * N + col] = sum;
}
