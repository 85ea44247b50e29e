/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [16, 64]

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [16, 64]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [256]
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Boxes of the copy engine hang over the edges of both operands, in every case but the timed one: it reads nothing there and fills with zeros, which
// are multiplied like everything else.

#include <cuda_bf16.h>

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :
                 : "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

extern "C" __global__ void __launch_bounds__(256) product(const __grid_constant__ TensorMap mapX,
                                                          const __grid_constant__ TensorMap mapWeight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(128) __nv_bfloat16 left[16][64];
    __shared__ __align__(128) __nv_bfloat16 right[16][64];
    __shared__ __align__(8) unsigned long long barrier;
    const int row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
    const int r = threadIdx.x / 16, n = threadIdx.x % 16;
    const unsigned full = sharedAddress(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(full) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    float sum = 0.0f;
    unsigned parity = 0;
    for (int k0 = 0; k0 < K; k0 += 64) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(full), "r"(4096) : "memory");
            copyBox(sharedAddress(left), mapX, k0, row0, full);
            copyBox(sharedAddress(right), mapWeight, k0, col0, full);
        }
        waitPhase(full, parity);
        parity ^= 1;
        for (int k = 0; k < 64; ++k)
            sum += __bfloat162float(left[r][k]) * __bfloat162float(right[n][k]);
        __syncthreads(); // before the boxes are filled again
    }
    if (row0 + r < M && col0 + n < N)
        y[(row0 + r) * N + col0 + n] = __float2bfloat16(sum);
}
