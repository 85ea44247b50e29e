/*klineage
surface = "cuda"

[[launch]]
kernel = "turn"
grid = ["ceil_div(T * H * D, 256)"]
block = [256]
args = ["x", "positions", "theta", "y", "int T", "int H", "int D"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Angles and their sines in double precision; a parent.
#include <cuda_bf16.h>

// Elements j and j + D of a head are turned by the position times theta[j].
extern "C" __global__ __launch_bounds__(256) void turn(const __nv_bfloat16 *x, const int *positions, const float *theta, __nv_bfloat16 *y, int T, int H, int D)
{
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= T * H * D)
        return;
    const int j = at % D, head = at / D, token = head / H;
    const __nv_bfloat16 *in = x + size_t(head) * 2 * D;
    __nv_bfloat16 *out = y + size_t(head) * 2 * D;
    const float a = __bfloat162float(in[j]), b = __bfloat162float(in[j + D]);
    double sine, cosine;
    sincos(double(positions[token]) * double(theta[j]), &sine, &cosine);
    const float s = float(sine), c = float(cosine);
    out[j] = __float2bfloat16(a * c - b * s);
    out[j + D] = __float2bfloat16(a * s + b * c);
}
