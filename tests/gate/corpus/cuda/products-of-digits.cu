/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [16, 16]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds whole numbers: significands as integers, a sum of 64 bits for each exponent that comes up in a run, joined in double precision.


#include <cuda_bf16.h>

struct Parts {
    int digits, exponent;
};
// A bf16 is digits times a power of two.
__device__ __forceinline__ Parts partsOf(const __nv_bfloat16 v)
{
    const unsigned bits = __bfloat16_as_ushort(v), field = bits >> 7 & 255;
    const int digits = int(bits & 127) | (field ? 128 : 0);
    return {bits >> 15 ? -digits : digits, int(field ? field : 1) - 134};
}
extern "C" __global__ __launch_bounds__(256) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N)
        return;
    double sum = 0;
    long long whole = 0;
    int origin = -1000;
    for (int k = K - 1; k >= 0; --k) {
        const Parts a = partsOf(x[size_t(row) * K + k]), b = partsOf(weight[size_t(col) * K + k]);
        const int exponent = a.exponent + b.exponent, up = exponent - origin;
        if (up < 0 || up > 32) { // a new run, begun a little below
            sum += ldexp(double(whole), origin);
            whole = 0;
            origin = exponent - 16;
        }
        whole += static_cast<long long>(a.digits * b.digits) << (exponent - origin);
    }
    sum += ldexp(double(whole), origin);
    y[size_t(row) * N + col] = __float2bfloat16(float(sum));
}
