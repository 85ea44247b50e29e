/*klineage
surface = "cuda"

[[workspace]]
name = "tiles"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64)", "8576"]
init = "poison"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "gdn_prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
args = ["tm_q", "tm_k", "g", "beta", "tiles", "int T", "int HQ", "int HV", "float rsqrt(D)"]
shared = "52992"

[[launch]]
kernel = "gdn_walk"
grid = ["2", "HV", "B"]
block = ["192"]
args = ["tm_q", "tm_k", "tm_v", "tm_out", "tiles", "initial_state", "final_state", "int T", "int HQ", "int HV"]
shared = "208896"
pdl = true
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 steps. gdn_prepare: what needs no state, for all chunks at once; gdn_walk: from
// chunk to chunk, with the transposed state in the registers of a warpgroup, 64 columns of values a block. Two more warps
// fill its ring and send its outputs, which reach shared memory while the next chunk's first products run.
// gdn_prepare multiplies all of a chunk's keys and queries at once by wgmma, from what the copy engine brings; solution,
// scores and factors leave as one run of bytes, swizzled already, that gdn_walk takes in one copy.

#include <cuda_bf16.h>

constexpr int CHUNK = 64; // steps a chunk
constexpr int D = 128;    // keys, and columns of values, of a head
constexpr int PITCH = 68; // of rows of the system in single precision

// A tile of the workspace: solution and scores, 64 x 64 swizzled bf16 each, and three factors of each step in float:
// exp(G), scale exp(G), exp(G[63] - G).
constexpr int TILE_BYTES = 2 * 8192 + 3 * CHUNK * 4;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

extern __shared__ __align__(1024) unsigned char dynamicShared[];

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What this thread wrote to shared memory becomes visible to the copy engine and the tensor cores.
__device__ __forceinline__ void fenceAsync()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

// The first lane arrives, without a branch.
__device__ __forceinline__ void arriveFirstLane(unsigned barrier, int lane)
{
    asm volatile("{\n"
                 ".reg .pred first;\n"
                 "setp.eq.s32 first, %1, 0;\n"
                 "@first mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}" :: "r"(barrier), "r"(lane) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// Starts the copy of one box, from `column` of `head` at step `step` on.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int step, int batch,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(head), "r"(step), "r"(batch), "r"(barrier) : "memory");
}

// Starts the copy of contiguous bytes to shared memory.
__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, int column, int head, int step, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&map), "r"(column), "r"(head), "r"(step), "r"(batch), "r"(from) : "memory");
}

__device__ __forceinline__ void storeBytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the copy engine has read all that this thread's stores send.
__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Waits until this thread's stores have been written.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void launchDependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void waitForParents()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Four 8 x 8 matrices, each transposed; lanes 8i to 8i + 7 name the rows in memory of matrix i.
__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ void storeMatricesTransposed(unsigned row, const unsigned (&from)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

// ---- wgmma

// Describe rows of 128 swizzled bytes, 1024 bytes from one group of 8 rows to the next; where they begin, in units of 16
// bytes, is added. Operands whose rows are not summed over;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and a right one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a * b^T, or d += it; 64 x 16 times 16 x 64, both from shared memory.
__device__ __forceinline__ void multiplyShared(float (&d)[32], unsigned long long a, unsigned long long b,
                                               int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0)
        : "l"(a), "l"(b), "r"(accumulate));
}

// d = a * b^T, or d += it; 64 x 16 times 16 x 64.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b,
                                              int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d += a * b, 64 x 16 times 16 x 128.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(0), SUMS32(32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products but the last PENDING have ended.
template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// Keeps the compiler from moving anything that it does with these registers across this point.
template <int COUNT> __device__ __forceinline__ void hold(float (&r)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(r[i]) :: "memory");
}

template <int COUNT> __device__ __forceinline__ void hold(unsigned (&r)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        asm volatile("" : "+r"(r[i / 4][i % 4]) :: "memory");
}

// Results of products as left operands of the next.
template <int COUNT>
__device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// ---- The inverse of the triangular system

// d += a * b, 16 x 8 times 8 x 8, in tf32.
__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned toTf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Inverts the blocks of 16 x 16 on the diagonal, a thread for each column; by the first two warps. Only what lies below
// the diagonal is used.
__device__ __forceinline__ void invertDiagonal(float (*m)[PITCH])
{
    const int first = threadIdx.x / 16 * 16, column = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int i = 1; i < 16; ++i) {
#pragma unroll
        for (int k = 0; k < 16; k += 4) {
            if (k < i) {
                const float4 row = *reinterpret_cast<const float4 *>(&m[first + i][first + k]);
                x[i] -= row.x * x[k];
                if (k + 1 < i)
                    x[i] -= row.y * x[k + 1];
                if (k + 2 < i)
                    x[i] -= row.z * x[k + 2];
                if (k + 3 < i)
                    x[i] -= row.w * x[k + 3];
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[first + i][first + column] = x[i];
}

// 16 x 16 of -C^-1 B A^-1, where A and C are SIZE x SIZE, A begins at `first`, and both are inverted already: the rows
// from `row` of C on, the columns from `column` of A on. By one warp.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&to)[2][4], float (*m)[PITCH], int first, int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, second = first + SIZE;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < row + 16) { // zeros of C^-1 behind
            const float *left = &m[second + row + g][second + k + c];
            const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]),
                                   toTf32(left[8 * PITCH + 4])};
#pragma unroll
            for (int n = 0; n < SIZE; n += 8)
                multiplyTf32(product[n / 8], a, toTf32(m[second + k + c][first + n + g]),
                             toTf32(m[second + k + c + 4][first + n + g]));
        }
    }
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k + 8 > column) { // zeros of A^-1 before
            // Columns 2c and 2c + 1 of the product are taken for numbers c and c + 4 of the sum, on both sides.
            const float(&d)[4] = product[k / 8];
            const unsigned a[4] = {toTf32(-d[0]), toTf32(-d[2]), toTf32(-d[1]), toTf32(-d[3])};
#pragma unroll
            for (int n = 0; n < 16; n += 8)
                multiplyTf32(to[n / 8], a, toTf32(m[first + k + 2 * c][first + column + n + g]),
                             toTf32(m[first + k + 2 * c + 1][first + column + n + g]));
        }
    }
}

__device__ __forceinline__ void storeBlock(float (*m)[PITCH], const float (&from)[2][4], int row, int column)
{
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            m[row + g + i / 2 * 8][column + n * 8 + 2 * c + i % 2] = from[n][i];
    }
}

// The running sums of a chunk's log gates, as powers of two, and its corrections; by one warp. Steps after the last one
// neither decay nor correct.
__device__ __forceinline__ void readGates(float *sums, float *betas, const float *gates, const float *beta,
                                          size_t pitch, int valid)
{
    const int lane = threadIdx.x % 32;
    const bool hasEven = 2 * lane < valid, hasOdd = 2 * lane + 1 < valid;
    const float even = hasEven ? gates[2 * lane * pitch] : 0.0f;
    const float odd = hasOdd ? gates[(2 * lane + 1) * pitch] : 0.0f;
    const float betaEven = hasEven ? beta[2 * lane * pitch] : 0.0f;
    const float betaOdd = hasOdd ? beta[(2 * lane + 1) * pitch] : 0.0f;
    const float own = even + odd;
    float sum = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    float before = __shfl_up_sync(~0u, sum, 1);
    before = lane > 0 ? before : 0.0f;
    constexpr float LOG2E = 1.44269504f;
    *reinterpret_cast<float2 *>(sums + 2 * lane) = make_float2((before + even) * LOG2E, sum * LOG2E);
    *reinterpret_cast<float2 *>(betas + 2 * lane) = make_float2(betaEven, betaOdd);
}

// ---- Launch 1: solution, scores and factors of a chunk, for all value heads of a group.

// Shared memory: the operands (K, then Q) at first; then a tile, the system, and another tile.
constexpr int SYSTEM = 17408;
constexpr int SECOND_TILE = 2 * 17408;
static_assert(CHUNK * PITCH * 4 == 17408 && TILE_BYTES <= 17408, "");

extern "C" __global__ void __launch_bounds__(128, 4)
    gdn_prepare(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *gates,
                const float *beta, __nv_bfloat16 *tiles, int T, int HQ, int HV, float scale)
{
    __shared__ __align__(16) float sums[4][CHUNK];
    __shared__ __align__(16) float betas[4][CHUNK];
    __shared__ unsigned long long barrier;

    launchDependents();
    const int group = blockIdx.x, batch = blockIdx.z, chunks = gridDim.y;
    const int chunk = chunks - 1 - int(blockIdx.y); // the first chunks last: they are needed first
    const int ratio = HV / HQ, first = chunk * CHUNK, valid = min(CHUNK, T - first);
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int g = lane / 4, c = lane % 4;

    const unsigned start = sharedAddress(dynamicShared);
    unsigned char *room = dynamicShared + (((start + 1023) & ~1023u) - start);
    const unsigned roomAddress = sharedAddress(room);
    const unsigned full = sharedAddress(&barrier);
    if (threadIdx.x == 0) {
        initBarrier(full, 1);
        fenceBarriers();
        fenceAsync();
        expectBytes(full, 4 * 8192);
        copyBox(roomAddress, mapK, 0, group, first, batch, full);
        copyBox(roomAddress + 8192, mapK, 64, group, first, batch, full);
        copyBox(roomAddress + 16384, mapQ, 0, group, first, batch, full);
        copyBox(roomAddress + 24576, mapQ, 64, group, first, batch, full);
    }
    __syncwarp();

    const size_t gate = (size_t(batch) * T + first) * HV + group * ratio;
    if (warp < ratio)
        readGates(sums[warp], betas[warp], gates + gate + warp, beta + gate + warp, HV, valid);
    __syncthreads();
    waitPhase(full, 0);

    // kk[t][s] = k[t] . k[s] and kq[s][t] = k[s] . q[t], 16 rows a warp.
    float kk[32], kq[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        kk[i] = kq[i] = 0.0f;
    const unsigned at = __shfl_sync(~0u, (roomAddress & 0x3ffff) >> 4, 0);
    hold(kk);
    hold(kq);
    fenceProducts();
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const unsigned offset = (step / 4 * 8192 + step % 4 * 32) / 16;
        multiplyShared(kk, ALONG + (at + offset), ALONG + (at + offset), step > 0);
    }
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const unsigned offset = (step / 4 * 8192 + step % 4 * 32) / 16;
        multiplyShared(kq, ALONG + (at + offset), ALONG + (at + 1024 + offset), step > 0);
    }
    commitProducts();
    waitProducts<0>();
    hold(kk);
    hold(kq);
    __syncthreads(); // the operands' room is free

    float(*m)[PITCH] = reinterpret_cast<float(*)[PITCH]>(room + SYSTEM);
    const int row = warp * 16 + g;
    const unsigned matrices = (lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16;

#pragma unroll 1
    for (int i = 0; i < ratio; ++i) {
        if (i > 0 && i % 4 == 0) {
            if (i + warp < ratio)
                readGates(sums[warp], betas[warp], gates + gate + i + warp, beta + gate + i + warp, HV, valid);
            __syncthreads();
        }
        const float *sum = sums[i % 4], *b = betas[i % 4];
        unsigned char *tile = room + i % 2 * SECOND_TILE;
        const unsigned tileAddress = roomAddress + i % 2 * SECOND_TILE;

        const float sum0 = sum[row], sum1 = sum[row + 8];
        { // the system; row is t, column is s
            const float b0 = b[row], b1 = b[row + 8];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                if (n < 4 || warp >= 2) {
                    const int column = 8 * n + 2 * c;
                    float2 top = make_float2(0.0f, 0.0f), bottom = make_float2(0.0f, 0.0f);
                    if (n / 2 <= warp) {
                        const float2 other = *reinterpret_cast<const float2 *>(sum + column);
                        top.x = column < row ? b0 * power2(sum0 - other.x) * kk[4 * n] : 0.0f;
                        top.y = column + 1 < row ? b0 * power2(sum0 - other.y) * kk[4 * n + 1] : 0.0f;
                        bottom.x = column < row + 8 ? b1 * power2(sum1 - other.x) * kk[4 * n + 2] : 0.0f;
                        bottom.y = column + 1 < row + 8 ? b1 * power2(sum1 - other.y) * kk[4 * n + 3] : 0.0f;
                    }
                    *reinterpret_cast<float2 *>(&m[row][column]) = top;
                    *reinterpret_cast<float2 *>(&m[row + 8][column]) = bottom;
                }
            }
        }
        // The scores; row is s, column is t, and they are stored transposed.
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            unsigned packed[4] = {0u, 0u, 0u, 0u};
            if (p >= warp) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int n = 2 * p + half, column = 8 * n + 2 * c;
                    const float2 other = *reinterpret_cast<const float2 *>(sum + column);
                    const float x0 = row <= column ? scale * power2(other.x - sum0) * kq[4 * n] : 0.0f;
                    const float y0 = row <= column + 1 ? scale * power2(other.y - sum0) * kq[4 * n + 1] : 0.0f;
                    const float x1 = row + 8 <= column ? scale * power2(other.x - sum1) * kq[4 * n + 2] : 0.0f;
                    const float y1 = row + 8 <= column + 1 ? scale * power2(other.y - sum1) * kq[4 * n + 3] : 0.0f;
                    packed[2 * half] = pack(x0, y0);
                    packed[2 * half + 1] = pack(x1, y1);
                }
            }
            __syncwarp();
            storeMatricesTransposed(tileAddress + 8192 + matrices + p * 2048, packed);
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(m);
            __syncwarp();
            float block[2][4] = {}; // this warp's two blocks become one
            mergeBlocks<16>(block, m, warp * 32, 0, 0);
            __syncwarp();
            storeBlock(m, block, warp * 32 + 16, warp * 32);
        } else {
            const int t = threadIdx.x - 64;
            float *factors = reinterpret_cast<float *>(tile + 16384);
            const float decay = power2(sum[t]);
            factors[t] = decay;
            factors[CHUNK + t] = decay * scale;
            factors[2 * CHUNK + t] = power2(sum[CHUNK - 1] - sum[t]);
            // The solution's zeros in the upper right.
            const int r = t / 2;
#pragma unroll
            for (int q = 0; q < 2; ++q) {
                const int piece = 4 + t % 2 * 2 + q;
                *reinterpret_cast<uint4 *>(tile + r * 128 + (piece ^ (r % 8)) * 16) = make_uint4(0u, 0u, 0u, 0u);
            }
        }
        __syncthreads();

        { // the lower left of the solution, 16 x 16 a warp
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const float2 by = *reinterpret_cast<const float2 *>(b + warp % 2 * 16 + n * 8 + 2 * c);
                const int piece = warp % 2 * 2 + n;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int r = 32 + warp / 2 * 16 + g + 8 * h;
                    *reinterpret_cast<unsigned *>(tile + r * 128 + (piece ^ (r % 8)) * 16 + c * 4) =
                        pack(block[n][2 * h] * by.x, block[n][2 * h + 1] * by.y);
                }
            }
        }
        { // and its two blocks of 32 x 32 on the diagonal, half a row a thread
            const int r = threadIdx.x / 2, column = r / 32 * 32 + threadIdx.x % 2 * 16;
#pragma unroll
            for (int q = 0; q < 2; ++q) {
                const float4 x = *reinterpret_cast<const float4 *>(&m[r][column + 8 * q]);
                const float4 y = *reinterpret_cast<const float4 *>(&m[r][column + 8 * q + 4]);
                const float4 bx = *reinterpret_cast<const float4 *>(b + column + 8 * q);
                const float4 by = *reinterpret_cast<const float4 *>(b + column + 8 * q + 4);
                *reinterpret_cast<uint4 *>(tile + r * 128 + ((column / 8 + q) ^ (r % 8)) * 16) =
                    make_uint4(pack(x.x * bx.x, x.y * bx.y), pack(x.z * bx.z, x.w * bx.w),
                               pack(y.x * by.x, y.y * by.y), pack(y.z * by.z, y.w * by.w));
            }
        }
        fenceAsync();
        if (threadIdx.x == 0)
            waitStoresRead(); // the tile before this one has left: the next member may take its room
        __syncthreads();
        if (threadIdx.x == 0) {
            const size_t index = (size_t(batch) * HV + group * ratio + i) * chunks + chunk;
            storeBytes(tiles + index * (TILE_BYTES / 2), tileAddress, TILE_BYTES);
            commitStores();
        }
        __syncwarp();
    }
    if (threadIdx.x == 0)
        waitStores();
}

// ---- Launch 2: from chunk to chunk.

constexpr int STAGES = 3;
constexpr int KEYS = 0, QUERIES = 16384, VALUES = 32768, SOLUTION = 40960, SCORES = 49152, FACTORS = 57344;
constexpr int COPIED = 40960 + TILE_BYTES;
constexpr int STAGE_BYTES = 57 * 1024;
constexpr int ROOMS = STAGES * STAGE_BYTES; // two rooms for the outputs of a chunk, a box of 64 x 32 for each two warps
constexpr int BOX_BYTES = 8192;
constexpr int ROOM_BYTES = 2 * BOX_BYTES;
static_assert(COPIED <= STAGE_BYTES && ROOMS + 2 * ROOM_BYTES + 1024 == 208896, "");

// d = a * b^T, 64 x 128 times 128 x 64: the transposed state and a chunk's keys or queries.
__device__ __forceinline__ void multiplyState(float (&d)[32], const unsigned (&a)[8][4], unsigned at)
{
#pragma unroll
    for (int step = 0; step < 8; ++step)
        multiplyAlong(d, a[step], ALONG + (at + (step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
}

// This lane's values of a chunk, transposed, and the decays of its steps.
__device__ __forceinline__ void readValues(unsigned (&values)[4][4], float2 (&decays)[8], unsigned from,
                                           const float *factors)
{
#pragma unroll
    for (int p = 0; p < 4; ++p)
        loadMatricesTransposed(values[p], from + p * 2048);
#pragma unroll
    for (int n = 0; n < 8; ++n)
        decays[n] = *reinterpret_cast<const float2 *>(factors + n * 8);
}

// Writes this warp's outputs of `chunk` to their room as soon as that is free, and tells the warp that sends them.
__device__ __forceinline__ void leaveOutputs(const float (&out)[32], const unsigned (&places)[2][2], int chunk,
                                             unsigned ready, unsigned taken, int lane)
{
    const unsigned which = chunk % 2u, offset = which * ROOM_BYTES;
    waitPhase(taken + 8 * which, (chunk / 2u & 1u) ^ 1u);
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("st.shared.f32 [%0], %1;"
                     :: "r"(places[i / 2 % 2][i % 2] + offset + i / 4 * 1024), "f"(out[i]) : "memory");
    __syncwarp();
    arriveFirstLane(ready + 8 * which, lane);
}

extern "C" __global__ void __launch_bounds__(192, 1)
    gdn_walk(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
             const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapOut,
             const __nv_bfloat16 *tiles, const float *initial_state, float *final_state, int T, int HQ, int HV)
{
    __shared__ unsigned long long barriers[2 * STAGES + 4];

    const int column0 = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + CHUNK - 1) / CHUNK;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);

    const unsigned start = sharedAddress(dynamicShared);
    unsigned char *room = dynamicShared + (((start + 1023) & ~1023u) - start);
    const unsigned ring = sharedAddress(room);
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned ready = empty + 8 * STAGES, taken = ready + 16; // of the rooms for outputs
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        for (int i = 0; i < 2; ++i) {
            initBarrier(ready + 8 * i, 4);
            initBarrier(taken + 8 * i, 1);
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp == 4) { // fills the ring
        if (lane == 0) {
            const int group = head / (HV / HQ);
            const __nv_bfloat16 *tile = tiles + (size_t(batch) * HV + head) * chunks * (TILE_BYTES / 2);
            int stage = 0;
            unsigned parity = 1;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                const int first = chunk * CHUNK;
                waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, COPIED);
                copyBox(to + KEYS, mapK, 0, group, first, batch, barrier);
                copyBox(to + KEYS + 8192, mapK, 64, group, first, batch, barrier);
                copyBox(to + VALUES, mapV, column0, head, first, batch, barrier);
                copyBox(to + QUERIES, mapQ, 0, group, first, batch, barrier);
                copyBox(to + QUERIES + 8192, mapQ, 64, group, first, batch, barrier);
                if (chunk == 0) {
                    waitForParents();
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyBytes(to + SOLUTION, tile, TILE_BYTES, barrier);
                tile += TILE_BYTES / 2;
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    if (warp == 5) { // sends the outputs
        if (lane == 0) {
#pragma unroll 1
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned which = chunk % 2u, from = ring + ROOMS + which * ROOM_BYTES;
                waitPhase(ready + 8 * which, chunk / 2u & 1u);
                fenceAsync(); // for what the other warps wrote
                storeBox(mapOut, column0, head, chunk * CHUNK, batch, from);
                storeBox(mapOut, column0 + 32, head, chunk * CHUNK, batch, from + BOX_BYTES);
                commitStores();
                waitStoresRead(); // also since shared memory goes away with the block
                arriveFirstLane(taken + 8 * which, 0);
            }
        }
        return;
    }

    // Number 4n + 2h + j of a result is at row 16 warp + g + 8h, a column of values, and column 8n + 2c + j.
    const int g = lane / 4, c = lane % 4;
    const size_t matrix = (size_t(batch) * HV + head) * D * D + column0 + warp * 16 + g;
    float state[64], next[32], out[32];
    unsigned left[8][4], rest[4][4], update[4][4];
    {
        const float *from = initial_state + matrix + 2 * c * D;
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] = from[(i / 4 * 8 + i % 2) * D + i / 2 % 2 * 8];
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
        next[i] = out[i] = 0.0f;
    packOperands(left, state);

    // Where this lane reads the values of a chunk, transposed, and where it writes outputs, at [h][j]: rows of 128 bytes,
    // swizzled, so that the lanes of a warp write to 32 banks.
    const unsigned values0 =
        ring + VALUES + (lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16;
    const unsigned box = ring + ROOMS + warp / 2 * BOX_BYTES;
    unsigned places[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int h = i / 2, j = i % 2, step = 2 * c + j, piece = warp % 2 * 4 + 2 * h + g / 4;
        places[h][j] = box + step * 128 + (piece ^ step) * 16 + g % 4 * 4;
    }

    // next = S^T K^T, and in its shadow out = S^T Q^T
    waitPhase(full, 0);
    unsigned at = __shfl_sync(~0u, (ring & 0x3ffff) >> 4, 0);
    hold(left);
    hold(next);
    hold(out);
    fenceProducts();
    multiplyState(next, left, at + KEYS / 16);
    commitProducts();
    multiplyState(out, left, at + QUERIES / 16);
    commitProducts();

    unsigned values[4][4];
    float2 decays[8];
    readValues(values, decays, values0, reinterpret_cast<const float *>(room + FACTORS) + 2 * c);

    int stage = 0, chunk = 0;
    unsigned parity = 0;
#pragma unroll 1
    while (true) {
        const float *factors = reinterpret_cast<const float *>(room + stage * STAGE_BYTES + FACTORS);

        waitProducts<1>();
        hold(next);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const unsigned value = values[i / 4][i % 4];
            const float2 decay = decays[i / 2];
            rest[i / 4][i % 4] = pack(__uint_as_float(value << 16) - decay.x * next[2 * i],
                                      __uint_as_float(value & 0xffff0000u) - decay.y * next[2 * i + 1]);
        }

        // next = rest * solution^T: the updates
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (at + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();

        float2 scaled[8], ends[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            ends[n] = *reinterpret_cast<const float2 *>(factors + 2 * CHUNK + n * 8 + 2 * c);
        const float whole = factors[CHUNK - 1];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            scaled[n] = *reinterpret_cast<const float2 *>(factors + CHUNK + n * 8 + 2 * c);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;
        hold(state);

        waitProducts<0>();
        hold(left);
        hold(out);
        hold(next);
        hold(rest);

        // state += (updates * exp(G[63] - G)) * K
#pragma unroll
        for (int i = 0; i < 16; ++i)
            update[i / 4][i % 4] = pack(next[2 * i] * ends[i / 2].x, next[2 * i + 1] * ends[i / 2].y);
        hold(update);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (at + (KEYS + step * 2048) / 16));
        commitProducts();

        // out = out * scale * exp(G) + updates * scores^T
        packOperands(rest, next);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            out[i] *= i % 2 ? scaled[i / 4].y : scaled[i / 4].x;
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (at + (SCORES + step * 32) / 16), 1);
        commitProducts();

        // Meanwhile the next chunk is fetched; after the last one its own place is read once more, for nothing.
        const unsigned before = empty + 8 * stage;
        const bool last = chunk + 1 == chunks;
        if (!last && ++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
        waitPhase(full + 8 * stage, parity);
        at = __shfl_sync(~0u, ((ring + stage * STAGE_BYTES) & 0x3ffff) >> 4, 0);
        readValues(values, decays, values0 + stage * STAGE_BYTES,
                   reinterpret_cast<const float *>(room + stage * STAGE_BYTES + FACTORS) + 2 * c);

        waitProducts<1>();
        hold(state);
        hold(update);
        packOperands(left, state);
        hold(left);
        waitProducts<0>();
        hold(out);
        hold(rest);
        if (last)
            break;

        // The next chunk's first products. While those with the keys run, this one's outputs leave; then those with the
        // queries take their registers.
        hold(next);
        fenceProducts();
        multiplyState(next, left, at + KEYS / 16);
        commitProducts();
        __syncwarp();
        arriveFirstLane(before, lane);
        leaveOutputs(out, places, chunk, ready, taken, lane);
        hold(out);
        fenceProducts();
        multiplyState(out, left, at + QUERIES / 16);
        commitProducts();
        ++chunk;
    }
    leaveOutputs(out, places, chunk, ready, taken, lane);

    {
        float *to = final_state + matrix + 2 * c * D;
#pragma unroll
        for (int i = 0; i < 64; ++i)
            to[(i / 4 * 8 + i % 2) * D + i / 2 % 2 * 8] = state[i];
    }
}
