/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16) * ceil_div(M, 16)"]
block = [128]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Asynchronous copies two stages ahead, a group a step even where nothing is left to ask for.
#include <cuda_bf16.h>

constexpr int SIDE = 16, DEPTH = 64, PIECES = DEPTH / 8, PITCH = PIECES + 1;
__device__ __forceinline__ unsigned word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
__device__ __forceinline__ float2 floats(unsigned two) { return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)); }
__device__ __forceinline__ void ask(uint4 &to, const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    const bool in = row < rows && k < K;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(unsigned(__cvta_generic_to_shared(&to))), "l"(from + (in ? size_t(row) * K + k : 0)), "r"(in ? 16 : 0) : "memory");
}
extern "C" __global__ __launch_bounds__(128) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *w, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) uint4 stage[3][2][SIDE][PITCH];
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8, down = threadIdx.x / 16, right = threadIdx.x % 16;
    const int steps = (K + DEPTH - 1) / DEPTH;
    const auto begin = [&](int step) {
        ask(stage[step % 3][0][line][piece], x, row0 + line, M, step * DEPTH + 8 * piece, K);
        ask(stage[step % 3][1][line][piece], w, col0 + line, N, step * DEPTH + 8 * piece, K);
        asm volatile("cp.async.commit_group;" : : : "memory");
    };
    begin(0);
    begin(1);
    float sum[2] = {};
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group 1;" : : : "memory"); // a group is begun at each step, always
        __syncthreads();
        
            begin(step + 2);
        const auto &now = stage[step % 3];
#pragma unroll
        for (int c = 0; c < PIECES; ++c) {
            const uint4 a0 = now[0][down][c], a1 = now[0][down + 8][c], b = now[1][right][c];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 f0 = floats(word(a0, i)), f1 = floats(word(a1, i)), g = floats(word(b, i));
                sum[0] = fmaf(f0.y, g.y, fmaf(f0.x, g.x, sum[0]));
                sum[1] = fmaf(f1.y, g.y, fmaf(f1.x, g.x, sum[1]));
            }
        }
    }
    asm volatile("cp.async.wait_all;" : : : "memory");
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + down + 8 * i, col = col0 + right;
        if (row < M && col < N)
            y[size_t(row) * N + col] = __float2bfloat16(sum[i]);
    }
}
