/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
block = ["288"]
cluster = ["1", "2"]
shared = "197632"
args = ["a", "b", "y", "maps", "int M", "int N", "int K"]
[[workspace]]
name = "maps"
dtype = "bf16"
shape = ["ceil_div(N, 256) * ceil_div(M, 256) * 256 + 64"]
init = "zero"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (wgmma m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while
// a ninth warp brings the slices of 64 of K into four buffers by TMA, half of b for two blocks at once; still missing are an order of
// the blocks that is kind to L2, and a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int THREADS = 256;
constexpr int A_PITCH = TILE_K; // 128 bytes, whose groups of 16 are swizzled by the row
constexpr int B_PITCH = TILE_N; // four panels of 64 columns, one after the other, each of rows like those of a
constexpr int A_SIZE = TILE_M * A_PITCH;
constexpr int B_SIZE = TILE_K * B_PITCH;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Copies 16 bytes, or writes 16 bytes of zeros and reads nothing where not `inside`.
__device__ __forceinline__ void copy16(__nv_bfloat16 *to, const __nv_bfloat16 *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void load4(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

#define FOUR(c) "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#define SIXTEEN(c) FOUR(c[0]), FOUR(c[1]), FOUR(c[2]), FOUR(c[3])
#define ALL(c) SIXTEEN(c[0]), SIXTEEN(c[1]), SIXTEEN(c[2]), SIXTEEN(c[3]), SIXTEEN(c[4]), SIXTEEN(c[5]), SIXTEEN(c[6]), SIXTEEN(c[7])
__device__ __forceinline__ void mma(float (&c)[8][4][4], const __nv_bfloat16 *a, const __nv_bfloat16 *b)
{
    const unsigned long long form = 1ull << 62 | 64ull << 32 | TILE_K * 128 / 16 << 16; // swizzle of 128, eight rows, a panel of b
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}"
                 : ALL(c)
                 : "l"(form + (shared_address(a) >> 4)), "l"(form + (shared_address(b) >> 4)), "r"(1) : "memory");
}

// Starts the copy of one slice of K. N and K are multiples of 8, so a group of eight along a row is wholly inside or wholly
// outside; where it is outside, the address is that of the tensor, and nothing is read.
__device__ __forceinline__ void bring(__nv_bfloat16 *as, __nv_bfloat16 *bs, const __nv_bfloat16 *a,
                                      const __nv_bfloat16 *b, int row0, int col0, int k0, int M, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < TILE_M * TILE_K / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int r = g / (TILE_K / 8);
        const int k = g % (TILE_K / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy16(as + r * A_PITCH + (k ^ (r % 8 * 8)), inside ? a + size_t(row0 + r) * K + (k0 + k) : a, inside);
    }
#pragma unroll
    for (int i = 0; i < TILE_K * TILE_N / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int k = g / (TILE_N / 8);
        const int c = g % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy16(bs + c / 64 * (TILE_K * 64) + k * 64 + ((c % 64) ^ (k % 8 * 8)), inside ? b + size_t(k0 + k) * N + (col0 + c) : b, inside);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

#define SET(field, bits, value) "tensormap.replace.tile." field ".shared::cta.b1024." bits " [%0], " value ";\n"
__device__ __forceinline__ void meet() { asm volatile("bar.warp.sync 0xffffffff;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }
__device__ __forceinline__ void await(unsigned barrier, unsigned parity) { asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier), "r"(parity) : "memory"); }
__device__ __forceinline__ void fetch(const __nv_bfloat16 *to, const char *map, int x, int y, unsigned barrier, unsigned short mask) // a box, for the blocks in mask
{ asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask) : "memory"); }
extern "C" __global__ void __launch_bounds__(288, 1)
    multiply(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, __nv_bfloat16 *__restrict__ y,
             char *maps, int M, int N, int K)
{
    extern __shared__ __align__(16) __nv_bfloat16 room[]; // four slices of 49152 bytes, and 1024 to align them
    __nv_bfloat16 *as = room + (-shared_address(room) & 1023u) / 2, *bs = as + 4 * A_SIZE;
    __shared__ __align__(128) unsigned long long map[2][16], full[4], empty[4];

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = (warp / 4) * 64;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[8][4][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int slices = (K + TILE_K - 1) / TILE_K;
    maps += (-reinterpret_cast<size_t>(maps) & 127) + (blockIdx.y * gridDim.x + blockIdx.x) * 256; // those of this block
    const unsigned fulls = shared_address(full), empties = shared_address(empty), rank = blockIdx.y % 2;
    if (threadIdx.x < 4)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\nfence.mbarrier_init.release.cluster;" ::"r"(fulls + threadIdx.x * 8), "r"(empties + threadIdx.x * 8) : "memory");
    if (warp == 8) { // the producer; first it describes a and b, in boxes of 64 columns, swizzled by 128 bytes, zeros outside
        map[lane / 16][lane % 16] = 0;
        __syncwarp();
        if (lane < 2) // older assemblers want the pitch in units of 16 bytes
            asm volatile(SET("global_address", "b64", "%1") SET("rank", "b32", "%6") SET("box_dim", "b32", "0, %7") SET("box_dim", "b32", "1, %4") SET("global_dim", "b32", "0, %2") SET("global_dim", "b32", "1, %3") SET("global_stride", "b64", "0, %5")
                         SET("element_stride", "b32", "0, %6") SET("element_stride", "b32", "1, %6") SET("elemtype", "b32", "10") SET("interleave_layout", "b32", "0") SET("swizzle_mode", "b32", "3") SET("fill_mode", "b32", "0")
                         ::"l"((unsigned long long)shared_address(map[lane])), "l"(lane ? b : a), "r"(lane ? N : K), "r"(lane ? K : M), "r"(lane ? TILE_K : TILE_M), "l"((lane ? N : K) * 2ull >> (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1205 ? 4 : 0)), "r"(1), "r"(64) : "memory");
        asm volatile("bar.warp.sync 0xffffffff;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%2], 128;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%1], [%3], 128;\nfence.proxy.tensormap::generic.acquire.gpu [%0], 128;\nfence.proxy.tensormap::generic.acquire.gpu [%1], 128;" ::"l"(maps), "l"(maps + 128), "r"(shared_address(map[0])), "r"(shared_address(map[1])) : "memory");
        meet();
        for (int s = 0; s < slices && lane == 0; ++s) {
            await(empties + s % 4 * 8, s / 4 % 2 ^ 1); // both blocks are done with what lay there
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(fulls + s % 4 * 8), "r"((A_SIZE + B_SIZE) * 2) : "memory");
            fetch(as + s % 4 * A_SIZE, maps, s * TILE_K, row0, fulls + s % 4 * 8, 1 << rank);
            for (unsigned c = rank * 128; c < rank * 128 + 128; c += 64) // half of b, for both blocks
                fetch(bs + s % 4 * B_SIZE + c * TILE_K, maps + 128, col0 + c, s * TILE_K, fulls + s % 4 * 8, 3);
        }
        meet(); // no block leaves while the other may still arrive at its barriers
        return;
    }
    meet();

    for (int s = 0; s < slices; ++s) {
        await(fulls + s % 4 * 8, s / 4 % 2); // this slice has arrived, the other block's half of b included

        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            mma(acc, as + s % 4 * A_SIZE + warp_row * A_PITCH + k, bs + s % 4 * B_SIZE + k * 64);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the slice before is done, this one goes on
        if (s > 0 && lane < 2) // and each warp says so to both blocks
            asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}" ::"r"(empties + (s - 1) % 4 * 8), "r"(lane) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL(acc)::"memory");

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + lane % 4 * 2;
            if (col >= N) // even, as N is: the two columns are inside together
                continue;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
        }
    }
    meet();
}
