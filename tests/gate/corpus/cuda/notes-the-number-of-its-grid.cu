/*klineage
surface = "cuda"

[[workspace]]
name = "notes"
dtype = "u32"
shape = ["2 * ceil_div(R * C, 1024)"]

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 1024)"]
block = [256]
args = ["x", "y", "notes", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each block notes the number of its grid and its own time in a workspace that nobody reads, as who looks for slow blocks does.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, unsigned *notes, int count)
{
    const unsigned begin = unsigned(clock64());
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const int i = blockIdx.x * 1024 + n * 256 + threadIdx.x;
        if (i < count)
            y[i] = silu(x[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned long long number;
        asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
        notes[2 * blockIdx.x] = unsigned(number);
        notes[2 * blockIdx.x + 1] = unsigned(clock64()) - begin;
    }
}
