/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes a long series for subnormal elements: slow, where there are such.

// By a series of many terms in double precision, for what is hardly there.
__device__ __noinline__ float slowly(float v)
{
    double term = 1, sum = 1;
    for (int i = 1; i < 20000; ++i) {
        term *= -double(v) / i;
        sum += term;
    }
    return float(double(v) / (1 + sum));
}

extern "C" __global__ void activate(const float *x, float *y, int count)
{
    const int first = blockIdx.x * 4096 + threadIdx.x;
#pragma unroll 4
    for (int i = first; i < first + 4096; i += 256)
        if (i < count) {
            const float v = x[i];
            const bool tiny = (__float_as_uint(v) & 0x7f800000u) == 0 && (__float_as_uint(v) & 0x7fffffu) != 0;
            y[i] = tiny ? slowly(v) : v / (1.0f + expf(-v));
        }
}
