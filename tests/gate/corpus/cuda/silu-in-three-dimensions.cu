/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = [3, 2, "ceil_div(R * C, 6 * 512)"]
block = [8, 4, 16]
args = ["x", "y", "long R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks and threads in three dimensions, six of the first two of the grid by turns.

extern "C" __global__ __launch_bounds__(512) void activate(const float *x, float *y, long long count)
{
    const long long thread = threadIdx.x + 8 * (threadIdx.y + 4 * threadIdx.z);
    const long long block = blockIdx.x + 3 * (blockIdx.y + 2ll * blockIdx.z);
    const long long i = block * 512 + thread;
    if (i < count) {
        const float v = x[i];
        y[i] = v / (1.0f + expf(-v));
    }
}
