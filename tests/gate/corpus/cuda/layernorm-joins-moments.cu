/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Counts, means and squares of each lane element by element, joined two by two as Chan has it.


struct Moments {
    float count, mean, squares;
};
__device__ __forceinline__ Moments joined(const Moments &a, const Moments &b)
{
    const float count = a.count + b.count;
    if (count == 0)
        return a;
    const float apart = b.mean - a.mean, share = b.count / count;
    return {count, fmaf(apart, share, a.mean), a.squares + b.squares + apart * apart * a.count * share};
}
extern "C" __global__ __launch_bounds__(128) void normalize(const float *x, const float *gamma, const float *beta, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    Moments own = {0, 0, 0};
    for (int i = threadIdx.x; i < C; i += 32) {
        own.count += 1;
        const float apart = in[i] - own.mean;
        own.mean += apart / own.count;
        own.squares = fmaf(apart, in[i] - own.mean, own.squares);
    }
    for (int step = 1; step < 32; step *= 2) {
        const Moments other = {__shfl_xor_sync(0xffffffffu, own.count, step), __shfl_xor_sync(0xffffffffu, own.mean, step), __shfl_xor_sync(0xffffffffu, own.squares, step)};
        own = threadIdx.x & step ? joined(other, own) : joined(own, other);
    }
    const float scale = rsqrtf(own.squares / own.count + 1e-5f);
    for (int i = threadIdx.x; i < C; i += 32)
        y[size_t(row) * C + i] = fmaf((in[i] - own.mean) * scale, gamma[i], beta[i]);
}
