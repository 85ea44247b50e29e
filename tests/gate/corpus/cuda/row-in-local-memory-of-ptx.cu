/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A warp a row; each lane keeps its last sixteen terms in local memory that PTX declares, and adds them up when there are so many.

extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, int R, int C)
{
    asm volatile(".local .align 4 .b8 terms[64];");
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float sum = 0.0f;
    unsigned held = 0;
    for (int i = lane; i < C; i += 32) {
        asm volatile("{ .reg .u64 p; mov.u64 p, terms; add.u64 p, p, %0; st.local.f32 [p], %1; }" : : "l"(4ull * held), "f"(in[i]) : "memory");
        ++held;
        if (held < 16 && i + 32 < C)
            continue;
        float part = 0.0f;
        for (unsigned k = 0; k < held; ++k) {
            float term;
            asm volatile("{ .reg .u64 p; mov.u64 p, terms; add.u64 p, p, %1; ld.local.f32 %0, [p]; }" : "=f"(term) : "l"(4ull * k) : "memory");
            part += term;
        }
        sum += part;
        held = 0;
    }
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0)
        y[row] = sum;
}
