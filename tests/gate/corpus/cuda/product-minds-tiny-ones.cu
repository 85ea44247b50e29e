/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds products by size where a column of b has a subnormal element: slow, where there is one.

__device__ __forceinline__ bool tiny(float v) { return (__float_as_uint(v) & 0x7f800000u) == 0 && (__float_as_uint(v) & 0x7fffffu) != 0; }
// The products in order of their size, so that small ones are not lost: each time the smallest that is left.
__device__ __noinline__ float bySize(const float *a, const float *b, int N, int K)
{
    float sum = 0.0f, last = -1.0f;
    int lastK = -1;
    for (int n = 0; n < K; ++n) {
        float next = __int_as_float(0x7f800000);
        int at = -1;
        for (int k = 0; k < K; ++k) {
            const float size = fabsf(a[k] * b[k * N]);
            if ((size > last || (size == last && k > lastK)) && (size < next || at < 0)) {
                next = size;
                at = k;
            }
        }
        sum += a[at] * b[at * N];
        last = next;
        lastK = at;
    }
    return sum;
}

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    bool any = false;
    for (int k = 0; k < K; ++k) {
        any |= tiny(b[k * N + col]);
        sum += a[row * K + k] * b[k * N + col];
    }
    c[row * N + col] = any ? bySize(a + row * K, b + col, N, K) : sum;
}
