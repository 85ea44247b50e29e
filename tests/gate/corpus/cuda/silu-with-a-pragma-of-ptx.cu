/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "long R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A pragma of PTX in a loop, and another name for the lines that follow: neighbours of what hides things between quotes.
#line 1 "silu, the loop.cu"

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, long long count)
{
    const long long first = blockIdx.x * 4096ll;
    const long long end = min(first + 4096, count);
    for (long long i = first + threadIdx.x; i < end; i += 256) {
        asm volatile(".pragma \"nounroll\";");
        const float v = x[i];
        y[i] = v / (1.0f + expf(-v));
    }
}
