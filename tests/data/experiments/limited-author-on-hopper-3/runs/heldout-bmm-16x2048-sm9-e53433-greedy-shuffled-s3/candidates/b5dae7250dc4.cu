/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wgmma"
grid = ["sm_count"]
block = ["32", "9"]
shared = "230464"
args = ["map_a", "map_b", "map_y", "int B", "int M", "int N", "int K"]
[[tensormap]]
name = "map_a"
tensor = "a"
box = [1, 128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "map_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "map_y"
tensor = "y"
box = [1, 16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with mma.sync: 128 x 128 blocks of y, eight warps of 64 x 32, 32-deep slices double-buffered in shared memory by cp.async;
// that is multiply, which is no longer launched: multiply_wgmma, at the end, has wgmma fed by TMA and specialized warps.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 128
#define BK 32
#define THREADS 256
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 272 bytes a row: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * LDB)

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

static __device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// Starts the copies of the slices of a and b that begin at k0.
static __device__ __forceinline__ void start_slice(unsigned sa, unsigned sb, const __nv_bfloat16 *a,
                                                   const __nv_bfloat16 *b, int tid, int row0, int col0, int k0, int M,
                                                   int N, int K)
{
#pragma unroll
    for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) { // a: 128 rows of 4 chunks
        const int c = s * THREADS + tid;
        const int r = c / (BK / 8);
        const int k = (c % (BK / 8)) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        const __nv_bfloat16 *from = inside ? a + size_t(row0 + r) * K + k0 + k : a;
        copy_async(sa + (r * LDA + k) * 2, from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 32 rows of 16 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + (k * LDB + n) * 2, from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 sa[2 * A_ELEMENTS]; // both together: 37888 bytes
    __shared__ __align__(16) __nv_bfloat16 sb[2 * B_ELEMENTS];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    const unsigned sa0 = shared_address(sa);
    const unsigned sb0 = shared_address(sb);
    // Where in a slice this lane points ldmatrix, in bytes.
    const unsigned a_lane = ((warp_row + lane % 16) * LDA + (lane / 16) * 8) * 2;
    const unsigned b_lane = ((lane % 16) * LDB + warp_col + (lane / 16) * 8) * 2;

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int slices = (K + BK - 1) / BK;
    start_slice(sa0, sb0, a, b, tid, row0, col0, 0, M, N, K);
    commit_copies();

    for (int t = 0; t < slices; ++t) {
        const int now = t & 1;
        const int next = now ^ 1;
        if (t + 1 < slices)
            start_slice(sa0 + next * (A_ELEMENTS * 2), sb0 + next * (B_ELEMENTS * 2), a, b, tid, row0, col0,
                        (t + 1) * BK, M, N, K);
        commit_copies(); // an empty group after the last slice keeps the count right
        wait_for_all_but_one();
        __syncthreads();

        const unsigned a_now = sa0 + now * (A_ELEMENTS * 2) + a_lane;
        const unsigned b_now = sb0 + now * (B_ELEMENTS * 2) + b_lane;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[4][4];
            unsigned fb[2][4]; // each holds two column groups of eight
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], a_now + (i * 16 * LDA + k) * 2);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], b_now + (k * LDB + j * 16) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(sum[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next turn overwrites the slice just read
    }

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}

// Persistent blocks of 128 x 256 of y: warps 0 to 7 are two warpgroups that multiply 64 x 256 each, warp 8 fetches.
#define STAGES 4
#define STAGE_BYTES 49152 // 128 rows of 64 of a; then 64 rows of 256 of b, in four boxes of 64 columns
#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define D32(i) D8(i), D8(i + 8), D8(i + 16), D8(i + 24)
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
static __device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" : : "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_y, int B, int M, int N, int K)
{
    extern __shared__ unsigned char memory[];
    const unsigned sa = (shared_address(memory) + 1023) & ~1023u, out = sa + STAGES * STAGE_BYTES; // out: 4096 bytes a warp
    const unsigned full = out + 8 * 4096, empty = full + STAGES * 8;
    const int lane = threadIdx.x, warp = __shfl_sync(~0u, int(threadIdx.y), 0);
    const int rows = (M + 127) / 128, cols = (N + 255) / 256, slices = (K + 63) / 64;
    unsigned n = 0; // counts slices, over all blocks of y
    if (warp == 0 && lane < STAGES)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 8;\nfence.mbarrier_init.release.cluster;"
                     : : "r"(full + lane * 8), "r"(empty + lane * 8) : "memory");
    __syncthreads();
    for (int work = blockIdx.x; work < B * rows * cols; work += gridDim.x) {
        const int i = work / (rows * cols), row0 = work / cols % rows * 128, col0 = work % cols * 256;
        for (int t = 0; warp == 8 && lane == 0 && t < slices; ++t, ++n) {
            const unsigned at = sa + n % STAGES * STAGE_BYTES, arrived = full + n % STAGES * 8;
            wait_for(empty + n % STAGES * 8, (n / STAGES + 1) & 1); // all eight warps have left the place
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%5], %6;\n"
                         "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                         : : "r"(at), "l"(&map_a), "r"(t * 64), "r"(row0), "r"(i), "r"(arrived), "r"(STAGE_BYTES) : "memory");
            for (int h = 0; h < 4; ++h)
                asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                             : : "r"(at + 16384 + h * 8192), "l"(&map_b), "r"(col0 + h * 64), "r"(t * 64), "r"(i), "r"(arrived) : "memory");
        }
        if (warp == 8) continue;
        float d[128];
#pragma unroll 1
        for (int t = 0; t < slices; ++t, ++n) {
            const unsigned at = sa + n % STAGES * STAGE_BYTES;
            const unsigned long long fa = (1ull << 16 | 64ull << 32 | 1ull << 62) + ((at + warp / 4 * 8192) >> 4);
            const unsigned long long fb = (512ull << 16 | 64ull << 32 | 1ull << 62) + ((at + 16384) >> 4);
            wait_for(full + n % STAGES * 8, n / STAGES & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k) // the first product of all replaces d
                asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                             "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                             "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                             "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                             "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                             "}, %128, %129, p, 1, 1, 0, 1;\n}"
                             : D32(0), D32(32), D32(64), D32(96) : "l"(fa + k * 2), "l"(fb + k * 128), "r"(t + k) : "memory");
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (t > 0 && lane == 0) // the slice before this one has been multiplied
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + (n - 1) % STAGES * 8) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" : D32(0), D32(32), D32(64), D32(96) : : "memory");
        if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + (n - 1) % STAGES * 8) : "memory");
#pragma unroll
        for (int q = 0; q < 4; ++q) { // 16 rows of 64 columns a warp at a time, by two places in turn
            const unsigned box = out + warp * 4096 + q % 2 * 2048;
            if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            __syncwarp();
#pragma unroll
            for (int e = q * 32; e < q * 32 + 32; e += 8) // 16 columns
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                             : : "r"(box + lane % 16 * 128 + (((e % 32 / 4 + lane / 16) ^ (lane % 8)) * 16)), "r"(narrow(d[e], d[e + 1])),
                                 "r"(narrow(d[e + 2], d[e + 3])), "r"(narrow(d[e + 4], d[e + 5])), "r"(narrow(d[e + 6], d[e + 7])) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0 && row0 + warp * 16 < M && col0 + q * 64 < N)
                asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];"
                             : : "l"(&map_y), "r"(col0 + q * 64), "r"(row0 + warp * 16), "r"(i), "r"(box) : "memory");
            if (lane == 0) asm volatile("cp.async.bulk.commit_group;" ::: "memory"); // an empty group keeps the count right
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
