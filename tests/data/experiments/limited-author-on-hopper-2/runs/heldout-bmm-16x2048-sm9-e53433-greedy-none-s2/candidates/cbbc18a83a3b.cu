/*klineage
surface = "cuda"
tensormap = [{ name = "tm_a", tensor = "a", box = [1, 128, 64], swizzle = "128B", l2_promotion = "256B" },
             { name = "tm_b", tensor = "b", box = [1, 64, 64], swizzle = "128B", l2_promotion = "256B" }]

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)", "max(1, min(B, ceil_div(sm_count + 1, ceil_div(N, 256) * 2 * ceil_div(M, 256)) - 1))"]
cluster = ["1", "2", "1"]
block = ["32", "9"]
shared = "4 * 49152 + 64"
args = ["tm_a", "tm_b", "y", "int B", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with wgmma: 128 x 256 blocks of y, two warp groups of 64 x 256, and a warp that fills four buffers of 64-deep slices by TMA; wide stores of y are still missing.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 256
#define BK 64
#define STAGES 4
#define THREADS 256
#define LDA BK // 128 bytes a row; its eight chunks are swizzled by the row, as wgmma expects
#define LDB 64 // b lies in blocks of 64 columns: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * BN)
#define F4(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define F16(c) F4((c)[0]), F4((c)[1]), F4((c)[2]), F4((c)[3])
#define F128(c) F16((c)[0]), F16((c)[1]), F16((c)[2]), F16((c)[3]), F16((c)[4]), F16((c)[5]), F16((c)[6]), F16((c)[7])
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

// Sixteen bytes from global to shared memory; zeros, and nothing read, where inside is false.
static __device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the newest have arrived.
static __device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

static __device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void multiply_add(float (&c)[8][4][4], unsigned a, unsigned b)
{
    const unsigned long long layout = (1ull << 62) | (64ull << 32); // swizzled in 128 bytes, groups of eight rows 1024 bytes apart
    asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;}"
                 : F128(c)
                 : "l"(layout | (1ull << 16) | ((a & 0x3FFFF) >> 4)), "l"(layout | ((BK * LDB * 2ull / 16) << 16) | ((b & 0x3FFFF) >> 4)), "r"(1)); // without the block's rank in the cluster
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    return unsigned(__bfloat16_as_ushort(__float2bfloat16(low))) |
           (unsigned(__bfloat16_as_ushort(__float2bfloat16(high))) << 16);
}

// Starts the copies of the slices of a and b that begin at k0.
static __device__ __forceinline__ void start_slice(unsigned sa, unsigned sb, const __nv_bfloat16 *a,
                                                   const __nv_bfloat16 *b, int tid, int row0, int col0, int k0, int M,
                                                   int N, int K)
{
#pragma unroll
    for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) { // a: 128 rows of 8 chunks
        const int c = s * THREADS + tid;
        const int r = c / (BK / 8);
        const int k = (c % (BK / 8)) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        const __nv_bfloat16 *from = inside ? a + size_t(row0 + r) * K + k0 + k : a;
        copy_async(sa + (((r * LDA + k) * 2) ^ ((r % 8) * 16)), from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 64 rows of 32 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + (((((n / LDB) * BK + k) * LDB + n % LDB) * 2) ^ ((k % 8) * 16)), from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS + 32)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, __nv_bfloat16 *y, int B, int M, int N, int K)
{
    extern __shared__ __align__(1024) __nv_bfloat16 sa[]; // STAGES slices of a, then as many of b, then their barriers: 196672 bytes
    const __nv_bfloat16 *const sb = sa + STAGES * A_ELEMENTS;

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    y += size_t(blockIdx.z) * M * N;

    const unsigned sa0 = shared_address(sa);
    const unsigned sb0 = shared_address(sb);
    const unsigned full = sb0 + STAGES * (B_ELEMENTS * 2), empty = full + STAGES * 8; // a buffer's barriers: its bytes are there; the 16 warps of both blocks are done with it
    for (int s = 0; tid == 0 && s < STAGES; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tmbarrier.init.shared::cta.b64 [%1], 16;\n\tfence.mbarrier_init.release.cluster;" : : "r"(full + s * 8), "r"(empty + s * 8) : "memory");
    __syncwarp(); asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    const int slices = (K + BK - 1) / BK, total = slices * ((B - 1 - int(blockIdx.z)) / int(gridDim.z) + 1);
    for (int s = 0; warp == 8 && lane == 0 && s < total; ++s) { // the ninth warp loads; half of b's columns go to both blocks of the cluster
        const int buffer = s % STAGES, k0 = s % slices * BK, z = int(blockIdx.z) + s / slices * int(gridDim.z);
        asm volatile("{.reg .pred p;\n\tagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra again;}" : : "r"(empty + buffer * 8), "r"((s / STAGES + 1) % 2) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%5], %6;\n\tcp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(sa0 + buffer * (A_ELEMENTS * 2)), "l"(&tm_a), "r"(k0), "r"(row0), "r"(z), "r"(full + buffer * 8), "r"((A_ELEMENTS + B_ELEMENTS) * 2) : "memory");
        for (int n = int(blockIdx.y % 2) * (BN / 2), end = n + BN / 2; n < end; n += LDB)
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" : : "r"(sb0 + buffer * (B_ELEMENTS * 2) + n * (BK * 2)), "l"(&tm_b), "r"(col0 + n), "r"(k0), "r"(z), "r"(full + buffer * 8), "h"(short(3)) : "memory");
    }
    for (int first = 0; warp < 8 && first < total; first += slices, y += size_t(gridDim.z) * M * N) { // one product after the other (not indented)

    float sum[8][4][4]; // of a warp's 16 rows: 32 column groups of eight
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;


    for (int t = first; t < first + slices; ++t) {
        const int now = t % STAGES;
        asm volatile("{.reg .pred p;\n\tagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra again;}" : : "r"(full + now * 8), "r"(t / STAGES % 2) : "memory"); __syncwarp();

        const unsigned a_now = sa0 + now * (A_ELEMENTS * 2) + warp_row * (LDA * 2); // the rows of this warp group
        const unsigned b_now = sb0 + now * (B_ELEMENTS * 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            multiply_add(sum, a_now + k * 2, b_now + k * (LDB * 2));
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory"); // slice t runs on, t - 1 is done
        if (lane < 2 && t > first) asm volatile("{.reg .b32 r;\n\tmapa.shared::cluster.u32 r, %0, %1;\n\tmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}" : : "r"(empty + (t - 1) % STAGES * 8), "r"(lane) : "memory"); // lane 0 tells block 0 of the cluster, lane 1 block 1
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("" : F128(sum) : : "memory"); // no sum is looked at before
    if (lane < 2) asm volatile("{.reg .b32 r;\n\tmapa.shared::cluster.u32 r, %0, %1;\n\tmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}" : : "r"(empty + (first + slices - 1) % STAGES * 8), "r"(lane) : "memory");

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
    }
    __syncwarp(); asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory"); // a block stays while the other still reaches its shared memory
}
