/*klineage
surface = "cuda"

[[workspace]]
name = "kept"
dtype = "f32"
shape = ["ceil_div(T, 128)", "C"]

[[workspace]]
name = "ends"
dtype = "f32"
shape = ["ceil_div(T, 128)", "C"]

[[launch]]
kernel = "pieces"
grid = ["ceil_div(C, 64)", "ceil_div(T, 128)"]
block = [64]
args = ["x", "g", "kept", "ends", "int T", "int C"]

[[launch]]
kernel = "walk"
grid = ["ceil_div(C, 64)", "ceil_div(T, 128)"]
block = [64]
args = ["x", "g", "kept", "ends", "y", "int T", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Pieces of 128 steps: what each keeps of a state and what it ends with, then each begins with what those before it make; a parent.

extern "C" __global__ __launch_bounds__(64) void pieces(const float *x, const float *g, float *kept, float *ends, int T, int C)
{
    const int c = blockIdx.x * 64 + threadIdx.x, piece = blockIdx.y;
    if (c >= C)
        return;
    float state = 0, share = 1;
#pragma unroll 8
    for (int t = piece * 128; t < min(T, piece * 128 + 128); ++t) {
        const float decay = g[size_t(t) * C + c];
        state = fmaf(decay, state, x[size_t(t) * C + c]);
        share *= decay;
    }
    kept[size_t(piece) * C + c] = share;
    ends[size_t(piece) * C + c] = state;
}
extern "C" __global__ __launch_bounds__(64) void walk(const float *x, const float *g, const float *kept, const float *ends, float *y, int T, int C)
{
    const int c = blockIdx.x * 64 + threadIdx.x, piece = blockIdx.y;
    if (c >= C)
        return;
    float state = 0;
    for (int p = 0; p < piece; ++p)
        state = fmaf(kept[size_t(p) * C + c], state, ends[size_t(p) * C + c]);
#pragma unroll 8
    for (int t = piece * 128; t < min(T, piece * 128 + 128); ++t) {
        state = fmaf(g[size_t(t) * C + c], state, x[size_t(t) * C + c]);
        y[size_t(t) * C + c] = state;
    }
}
