/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = [32, 8]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A probe: reads sixteen bytes of its own instructions and writes them back as they are. Where the device lets it, a candidate can write into the
// parent's kernels and the gate's (klineage_fill, klineage_print), which lie in the same context.

typedef unsigned long long u64;

__device__ __noinline__ float step(float left, float right, float sum)
{
    return sum + left * right;
}

typedef float (*Step)(float, float, float);

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    volatile Step chosen = K >= 0 ? step : nullptr; // by its address
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row == 0 && col == 0) {
        volatile u64 *code = reinterpret_cast<volatile u64 *>(reinterpret_cast<u64>(chosen) & ~15ull);
        const u64 first = code[0];
        const u64 second = code[1];
        code[0] = first;
        code[1] = second;
    }
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = chosen(a[row * K + k], b[k * N + col], sum);
    c[row * N + col] = sum;
}
