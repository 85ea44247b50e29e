/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["2", "min(ceil_div(sm_count, 2), ceil_div(M, 256) * ceil_div(N, 256))"]
block = ["384"]
cluster = ["2", "1"]
shared = "230464"
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_w"
tensor = "weight"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Cluster tile 256x256 (two blocks along M), block tile 128x256x64, four stages, one producer warp and two consumer
// warpgroups of 64x256 each. The weight tile is loaded by halves and multicast to both blocks of the cluster.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

#define STAGES 4
#define A_BYTES 16384u                                  // 128 x 64 bf16
#define B_BYTES 32768u                                  // 256 x 64 bf16
#define OFF_A 0u
#define OFF_B (STAGES * A_BYTES)
#define OFF_C (STAGES * (A_BYTES + B_BYTES))            // 8 warps x 2 buffers x (16 x 64 bf16)
#define OFF_BAR (OFF_C + 32768u)

static __device__ __forceinline__ unsigned smem_u32(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void mbar_init(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbar_expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbar_wait(unsigned bar, unsigned parity)
{
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}\n"
        :: "r"(bar), "r"(parity) : "memory");
}

static __device__ __forceinline__ unsigned map_to_cta(unsigned addr, unsigned cta)
{
    unsigned r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(addr), "r"(cta));
    return r;
}

static __device__ __forceinline__ void arrive_cluster(unsigned cluster_addr)
{
    // Only finished reads by wgmma are handed over, so the default scope will do; release at the scope of the
    // cluster would put a full memory barrier before each arrival.
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(cluster_addr) : "memory");
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ __forceinline__ void tma_load(unsigned dst, const TensorMap *map, unsigned bar, int c0, int c1)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        :: "r"(dst), "l"(reinterpret_cast<unsigned long long>(map)), "r"(bar), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void tma_load_multicast(unsigned dst, const TensorMap *map, unsigned bar, int c0, int c1,
                                                          unsigned short mask)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%4, %5}], [%2], %3;"
        :: "r"(dst), "l"(reinterpret_cast<unsigned long long>(map)), "r"(bar), "h"(mask), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void tma_store(const TensorMap *map, unsigned src, int c0, int c1)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
        :: "l"(reinterpret_cast<unsigned long long>(map)), "r"(src), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void prefetch_map(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(reinterpret_cast<unsigned long long>(map)) : "memory");
}

static __device__ __forceinline__ unsigned pack_bf16(float lo, float hi)
{
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

static __device__ __forceinline__ unsigned long long make_desc(unsigned addr)
{
    // K-major, 128-byte swizzle: groups of 8 rows lie 1024 bytes apart.
    return static_cast<unsigned long long>((addr & 0x3FFFFu) >> 4)
         | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

static __device__ __forceinline__ void wgmma_m64n256k16(float (&d)[128], unsigned long long desc_a, unsigned long long desc_b,
                                                        int scale_d)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, "
        "%72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, "
        "%88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, "
        "%104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, "
        "%120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, p, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(desc_a), "l"(desc_b), "r"(scale_d));
}

// Cluster tiles go in groups of eight along M, so that tiles in flight together share rows of x and of weight in L2.
static __device__ __forceinline__ void tile_of(int t, int tiles_m, int tiles_n, int &m0, int &n0)
{
    const int per_group = 8 * tiles_n;
    const int group = t / per_group;
    const int first = group * 8;
    const int left = tiles_m - first;
    const int size = left < 8 ? left : 8;
    const int r = t - group * per_group;
    const int n = r / size;
    m0 = (first + (r - n * size)) * 256;
    n0 = n * 256;
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w, const __grid_constant__ TensorMap tm_y,
     int M, int N, int K)
{
    extern __shared__ unsigned char smem_raw[];
    const unsigned base = (smem_u32(smem_raw) + 1023u) & ~1023u;
    const unsigned full = base + OFF_BAR;
    const unsigned empty = full + STAGES * 8u;

    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = static_cast<int>(threadIdx.x) & 31;

    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int kblocks = (K + 63) / 64;

    if (threadIdx.x == 0) {
        prefetch_map(&tm_x);
        prefetch_map(&tm_w);
        prefetch_map(&tm_y);
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + s * 8, 1);         // the producer; the rest is bytes
            mbar_init(empty + s * 8, 16);       // eight consumer warps of each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    cluster_sync();

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0) {
            if (lane == 0) {
                unsigned stage = 0, phase = 0;
                for (int t = blockIdx.y; t < tiles; t += gridDim.y) {
                    int m0, n0;
                    tile_of(t, tiles_m, tiles_n, m0, n0);
                    const int row_a = m0 + static_cast<int>(rank) * 128;
                    const int row_b = n0 + static_cast<int>(rank) * 128;
                    for (int kb = 0; kb < kblocks; ++kb) {
                        const unsigned bar = full + stage * 8;
                        mbar_wait(empty + stage * 8, phase ^ 1u);
                        mbar_expect(bar, A_BYTES + B_BYTES);
                        tma_load(base + OFF_A + stage * A_BYTES, &tm_x, bar, kb * 64, row_a);
                        tma_load_multicast(base + OFF_B + stage * B_BYTES + rank * (B_BYTES / 2), &tm_w, bar,
                                           kb * 64, row_b, static_cast<unsigned short>(3));
                        if (++stage == STAGES) {
                            stage = 0;
                            phase ^= 1u;
                        }
                    }
                }
            }
            __syncwarp();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
        const int cw = warp - 4;                // consumer warp, 0 to 7: rows 16 * cw of the block's tile
        const int wg = cw >> 2;

        const unsigned long long desc_a0 = make_desc(base + OFF_A + static_cast<unsigned>(wg) * 8192u);
        const unsigned long long desc_b0 = make_desc(base + OFF_B);
        const unsigned release = map_to_cta(empty, static_cast<unsigned>(lane & 1));

        // stmatrix: lanes 8i to 8i+7 address the rows of the i-th 8x8 matrix.
        const unsigned buf = base + OFF_C + static_cast<unsigned>(cw) * 4096u;
        const unsigned st_row = static_cast<unsigned>((lane & 7) + ((lane >> 3) & 1) * 8) * 128u;
        const unsigned st_hi = static_cast<unsigned>(lane >> 4);
        const unsigned st_xor = static_cast<unsigned>(lane & 7);

        float d[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            d[i] = 0.0f;

        unsigned stage = 0, phase = 0;
        for (int t = blockIdx.y; t < tiles; t += gridDim.y) {
            int m0, n0;
            tile_of(t, tiles_m, tiles_n, m0, n0);

#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i]) :: "memory");

#pragma unroll 1
            for (int kb = 0; kb < kblocks; ++kb) {
                mbar_wait(full + stage * 8, phase);
                const unsigned long long da = desc_a0 + static_cast<unsigned long long>(stage * (A_BYTES >> 4));
                const unsigned long long db = desc_b0 + static_cast<unsigned long long>(stage * (B_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                wgmma_m64n256k16(d, da, db, kb != 0 ? 1 : 0);
                wgmma_m64n256k16(d, da + 2, db + 2, 1);
                wgmma_m64n256k16(d, da + 4, db + 4, 1);
                wgmma_m64n256k16(d, da + 6, db + 6, 1);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (kb > 0 && lane < 2)
                    arrive_cluster(release + ((stage + STAGES - 1) & (STAGES - 1)) * 8);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1u;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i]) :: "memory");
            if (lane < 2)
                arrive_cluster(release + ((stage + STAGES - 1) & (STAGES - 1)) * 8);
            __syncwarp();

            const int row = m0 + static_cast<int>(rank) * 128 + cw * 16;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const unsigned out = buf + static_cast<unsigned>(c & 1) * 2048u;
                if (lane == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                __syncwarp();
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int e = c * 32 + j * 8;
                    const unsigned r0 = pack_bf16(d[e + 0], d[e + 1]);
                    const unsigned r1 = pack_bf16(d[e + 2], d[e + 3]);
                    const unsigned r2 = pack_bf16(d[e + 4], d[e + 5]);
                    const unsigned r3 = pack_bf16(d[e + 6], d[e + 7]);
                    const unsigned chunk = (static_cast<unsigned>(2 * j) + st_hi) ^ st_xor;
                    const unsigned addr = out + st_row + chunk * 16u;
                    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                                 :: "r"(addr), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) {
                    const int col = n0 + c * 64;
                    if (row < M && col < N)
                        tma_store(&tm_y, out, col, row);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
                __syncwarp();
            }
        }
        if (lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block leaves while the other may still signal its barriers.
    cluster_sync();
}
