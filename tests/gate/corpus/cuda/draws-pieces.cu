/*klineage
surface = "cuda"

[[workspace]]
name = "next"
dtype = "u32"
shape = [1]
init = "zero"

[[launch]]
kernel = "activate"
grid = ["2 * sm_count"]
block = [256]
args = ["x", "y", "next", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Draws its pieces from a counter that each block asks, so that none knows what it will do.

extern "C" __global__ void activate(const float *x, float *y, unsigned *next, int count)
{
    __shared__ unsigned piece;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0)
            piece = atomicAdd(next, 1u);
        __syncthreads();
        const int first = piece * 4096;
        if (first >= count)
            return;
        for (int i = first + threadIdx.x; i < min(count, first + 4096); i += 256)
            y[i] = x[i] / (1.0f + expf(-x[i]));
    }
}
