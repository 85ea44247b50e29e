/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [32, 64]

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [32, 64]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["256"]
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tiles come by tensor maps, clipped at the edges, and two barriers in shared memory tell when; each is used again and again.

struct __align__(64) Map {
    char opaque[128];
};

__device__ void fetch(unsigned to, const Map &map, int column, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :
                 : "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

__device__ void await(unsigned barrier, unsigned parity)
{
    unsigned done = 0;
    while (done == 0)
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

__device__ float valueOf(unsigned short bits)
{
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

__device__ unsigned short bitsOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#define SLAB 4096u // bytes of a box: 32 rows of 64 bf16

extern "C" __global__ void __launch_bounds__(256)
    product(const __grid_constant__ Map mapX, const __grid_constant__ Map mapWeight, unsigned short *y, int M, int N, int K)
{
    __shared__ __align__(1024) unsigned short tiles[2][2][32 * 64]; // [stage][operand]
    __shared__ unsigned long long barriers[2];
    const unsigned ring = static_cast<unsigned>(__cvta_generic_to_shared(&tiles[0][0][0]));
    const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers));
    const int thread = threadIdx.x;
    const int row0 = blockIdx.y * 32;
    const int col0 = blockIdx.x * 32;
    const int slabs = (K + 63) / 64;
    if (thread == 0) {
        for (int stage = 0; stage < 2; ++stage)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(full + 8 * stage) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
    __syncthreads();
    float sums[4] = {};
    for (int slab = 0; slab <= slabs; ++slab) {
        if (thread == 0 && slab < slabs) {
            const unsigned stage = slab % 2;
            const unsigned to = ring + stage * 2 * SLAB;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :
                         : "r"(full + 8 * stage), "r"(2 * SLAB)
                         : "memory");
            fetch(to, mapX, slab * 64, row0, full + 8 * stage);
            fetch(to + SLAB, mapWeight, slab * 64, col0, full + 8 * stage);
        }
        if (slab > 0) {
            const int stage = (slab - 1) % 2;
            await(full + 8 * stage, (slab - 1) / 2 % 2);
            const unsigned short *right = tiles[stage][1] + thread % 32 * 64;
            for (int k = 0; k < 64; ++k) { // zeros behind the end of K
                const float w = valueOf(right[k]);
                for (int i = 0; i < 4; ++i)
                    sums[i] += valueOf(tiles[stage][0][(thread / 32 + 8 * i) * 64 + k]) * w;
            }
        }
        __syncthreads(); // everyone has left the stage that is filled next
    }
    const int col = col0 + thread % 32;
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + thread / 32 + 8 * i;
        if (row < M && col < N)
            y[static_cast<long long>(row) * N + col] = bitsOf(sums[i]);
    }
}
