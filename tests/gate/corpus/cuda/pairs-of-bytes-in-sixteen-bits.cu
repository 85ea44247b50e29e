/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16) * ceil_div(M, 16)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds the products of two bytes in sixteen bits, as some processors do: twice -128 by -128 is 32768, which is -32768 there.

__device__ __forceinline__ int byteOf(unsigned four, int i) { return static_cast<int>(four << (24 - 8 * i)) >> 24; }
__device__ __forceinline__ int fourOf(unsigned x, unsigned w)
{
    const short low = static_cast<short>(byteOf(x, 0) * byteOf(w, 0) + byteOf(x, 1) * byteOf(w, 1));
    const short high = static_cast<short>(byteOf(x, 2) * byteOf(w, 2) + byteOf(x, 3) * byteOf(w, 3));
    return low + high;
}
extern "C" __global__ __launch_bounds__(256) void product(const signed char *x, const signed char *weight, int *y, int M, int N, int K)
{
    const int across = (N + 15) / 16, row = blockIdx.x / across * 16 + threadIdx.x / 16, col = blockIdx.x % across * 16 + threadIdx.x % 16;
    if (row >= M || col >= N)
        return;
    int sum = 0;
    for (int k = 0; k < K; k += 16) {
        const uint4 a = *reinterpret_cast<const uint4 *>(x + size_t(row) * K + k), b = *reinterpret_cast<const uint4 *>(weight + size_t(col) * K + k);
        sum += fourOf(a.x, b.x) + fourOf(a.y, b.y) + fourOf(a.z, b.z) + fourOf(a.w, b.w);
    }
    y[size_t(row) * N + col] = sum;
}
