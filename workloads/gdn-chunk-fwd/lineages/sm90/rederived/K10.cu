/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 3
values = [2, 3]

[[workspace]]
name = "scores"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", 64, 64]

[[workspace]]
name = "factors"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", 4, 64]

[[tensormap]]
name = "tm_q"
tensor = "q"
dims = ["B", "T", "HQ * D"]
strides = ["T * HQ * D", "HQ * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_k"
tensor = "k"
dims = ["B", "T", "HQ * D"]
strides = ["T * HQ * D", "HQ * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_v"
tensor = "v"
dims = ["B", "T", "HV * D"]
strides = ["T * HV * D", "HV * D"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_a"
tensor = "a"
dims = ["B", "T", "HV * 64"]
strides = ["T * HV * 64", "HV * 64"]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_scores"
tensor = "scores"
dims = ["B * HV", "ceil_div(T, 64) * 64", 64]
strides = ["ceil_div(T, 64) * 64 * 64", 64]
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_output"
tensor = "output"
dims = ["B", "T", "HV * D"]
strides = ["T * HV * D", "HV * D"]
box = [1, 64, 32]
swizzle = "128B"

[[launch]]
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "2 * 64 * 128 * 2 + 1024"
args = ["q", "k", "g", "beta", "scores", "factors", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "pass_state"
grid = [2, "HV", "B"]
block = ["160"]
pdl = true
shared = "STAGES * (2 * 64 * 128 * 2 + 3 * 64 * 64 * 2 + 1024) + 2 * 64 * 64 * 4 + 1024"
args = ["tm_q", "tm_k", "tm_v", "tm_a", "tm_scores", "tm_output", "factors", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chunked forward pass on the tensor cores, the matrix of a chunk taken last: U - W S = a · R with
// R = beta ∘ (V - exp(gc) ∘ K S). prepare() computes what needs no state, for all chunks at once: the scores, whose product
// q · kᵀ the heads of a key head share, and the factors that follow from the gates. pass_state() goes from chunk to chunk. A block
// of it computes 64 columns of a head, with transposes: a warp owns 16 columns of S as rows of Sᵀ in registers, where the result
// of one product has the layout of the left operand of the next, so that no intermediate result leaves the registers.
//
// In pass_state() a fifth warp has the copy engine fill a ring of chunks, ahead of the four that compute. These are one
// warpgroup: wgmma takes 64 rows of Sᵀ, R or the updates from registers, and the tiles from shared memory once for all of them.
// Only the way from one state to the next is waited for: what the state says about the outputs is computed while the vector
// units work out R, and what the updates say about them while the next state is packed. The outputs are staged in shared memory
// while the first product of the next chunk runs, two warps a tile of 32 columns, and the copy engine writes them from there.
// pass_state() is launched while prepare() ends: it fills the ring with the tokens of its first chunks and reads its state, and waits
// before it copies what prepare() wrote.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

// Where the chunk of 8 bf16 of a row lies in a tile of 64 rows: halves of 64 columns, 128 swizzled bytes a row.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

__device__ __forceinline__ void copyAsync16(unsigned to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commitCopies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void waitCopies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// 64 rows of CHUNKS · 8 numbers to shared memory, zeros after `valid` rows; by 128 threads.
template <int CHUNKS>
__device__ __forceinline__ void copyTile(unsigned to, const __nv_bfloat16 *from, size_t pitch, int valid)
{
    for (int i = threadIdx.x; i < C * CHUNKS; i += 128) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        copyAsync16(to + place(row, chunk), from + (row < valid ? row * pitch : 0) + chunk * 8, row < valid);
    }
}

// Four 8 × 8 matrices; lanes 8i … 8i+7 name the rows of matrix i.
__device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

// d += a · b, 16 × 16 times 16 × 8.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

__device__ __forceinline__ float lowOf(unsigned pair)
{
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float highOf(unsigned pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// The copy engine sees the barriers of this block, too.
__device__ __forceinline__ void fenceBarriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
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

// Starts the copy of one box of 64 rows of 64 numbers.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int row, int outer,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(barrier) : "memory");
}

// Starts the copy of consecutive bytes.
__device__ __forceinline__ void copyBulk(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// Starts the copy of one box of 64 rows of 32 outputs from shared memory; what lies outside of the tensor is not written.
__device__ __forceinline__ void storeBox(unsigned from, const TensorMap &map, int column, int row, int outer)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];"
                 :: "l"(&map), "r"(column), "r"(row), "r"(outer), "r"(from) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the copies that this thread started with storeBox() have read shared memory.
__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void storeShared(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(to), "f"(value) : "memory");
}

// Four outputs of this thread, two rows of the 8 in `group`, to a tile of 128 swizzled bytes a row: `to` is where the first one of
// group 0 belongs, and bits 4 to 6 of it are where its row has put its 16 bytes. No two lanes use the same bank.
__device__ __forceinline__ void stageOutputs(unsigned to, int group, const float *four)
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
        storeShared((to ^ (j / 2 * 32 + j % 2 * 16)) + j % 2 * 128 + group * 1024, four[j]);
}

// Has the copy engine write a tile that two warps have staged, none if row < 0. Once the warps are past it, the tile sent before
// is free, too.
__device__ __forceinline__ void sendOutputs(unsigned tile, const TensorMap &map, int column, int row, int outer,
                                            int barrier, bool sender)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // what this thread staged, before the copy
    if (sender)
        waitStores();
    __syncwarp();
    asm volatile("bar.sync %0, 64;" :: "r"(barrier) : "memory");
    if (sender && row >= 0)
        storeBox(tile, map, column, row, outer);
    __syncwarp();
}

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The sums gc of a chunk's log gates, to base 2, and the factors that follow from them, 64 of each: beta, beta exp(gc),
// exp(gc_last - gc) and exp(gc); by one warp. Tokens after the last one neither decay nor update.
__device__ __forceinline__ void sumGates(float *sums, float *factors, const float *g, const float *beta, int pitch,
                                         int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float toBase2 = 1.44269504f;
    const float even = t < valid ? toBase2 * g[size_t(t) * pitch] : 0.0f;
    float sum = even + (t + 1 < valid ? toBase2 * g[size_t(t + 1) * pitch] : 0.0f);
    const float weight = t < valid ? beta[size_t(t) * pitch] : 0.0f;
    const float nextWeight = t + 1 < valid ? beta[size_t(t + 1) * pitch] : 0.0f;
    const float own = sum;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float last = __shfl_sync(~0u, sum, 31);
    const float before = sum - own + even; // up to the even one
    const float decay = exp2Fast(before), nextDecay = exp2Fast(sum);
    *reinterpret_cast<float2 *>(sums + t) = make_float2(before, sum);
    *reinterpret_cast<float2 *>(factors + t) = make_float2(weight, nextWeight);
    *reinterpret_cast<float2 *>(factors + C + t) = make_float2(weight * decay, nextWeight * nextDecay);
    *reinterpret_cast<float2 *>(factors + 2 * C + t) = make_float2(exp2Fast(last - before), exp2Fast(last - sum));
    *reinterpret_cast<float2 *>(factors + 3 * C + t) = make_float2(decay, nextDecay);
}

// Lets the next launch begin where there is room; nothing of this one can be relied on by then.
__device__ __forceinline__ void launchDependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the launch before this one has ended and its results are there.
__device__ __forceinline__ void waitForParents()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// At most 128 registers a thread, so that four blocks share a multiprocessor.
extern "C" __global__ void __launch_bounds__(128, 4)
    prepare(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g,
            const float *__restrict__ beta, __nv_bfloat16 *__restrict__ scores, float *__restrict__ factors, int T,
            int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][C];
    unsigned char *tiles = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    unsigned char *staged = tiles; // in place of k, when k is done with
    const unsigned ks = sharedAddress(tiles), qs = ks + C * D * 2;

    const int keyHead = blockIdx.x, keyHeads = gridDim.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int ratio = HV / keyHeads; // heads of a key head
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, pair = lane % 4 * 2;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(batch) * T + chunk * C;
    const size_t row0 = (token * keyHeads + keyHead) * D;
    const auto tileOf = [&](int head) { return (size_t(batch) * HV + head) * gridDim.y + chunk; };

    launchDependents();
    copyTile<16>(ks, k + row0, size_t(keyHeads) * D, valid);
    copyTile<16>(qs, q + row0, size_t(keyHeads) * D, valid);
    commitCopies();

    float blocks[4][2][4] = {}; // 16 rows of q · kᵀ, up to the diagonal
    for (int i = 0; i < ratio; ++i) {
        if (i % 4 == 0) { // a warp for each of the next four heads
            const int own = keyHead * ratio + i + warp;
            __syncthreads(); // the sums before are done with
            if (i + warp < ratio)
                sumGates(sums[warp], factors + tileOf(own) * 4 * C, g + token * HV + own, beta + token * HV + own, HV,
                         valid);
            waitCopies<0>();
            __syncthreads();
        }
        if (i == 0) {
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                unsigned query[4];
                loadMatrices(query, qs + place(warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    if (n > warp)
                        continue;
                    unsigned right[4];
                    loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
                    multiply(blocks[n][0], query, right[0], right[1]);
                    multiply(blocks[n][1], query, right[2], right[3]);
                }
            }
            __syncthreads(); // the tile of k becomes room for results
        }

        const float *sum = sums[i % 4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int t = warp * 16 + j / 2 * 8 + lane / 4, s = n * 16 + j % 2 * 8 + pair;
                const float *d = blocks[n][j % 2] + j / 2 * 2;
                const float low = s <= t ? scale * exp2Fast(sum[t] - sum[s]) * d[0] : 0.0f;
                const float high = s < t ? scale * exp2Fast(sum[t] - sum[s + 1]) * d[1] : 0.0f;
                *reinterpret_cast<unsigned *>(staged + place(t, s / 8) + lane % 4 * 4) = pack(low, high);
            }
        }
        __syncwarp(); // a warp stores the rows that it computed
        __nv_bfloat16 *to = scores + tileOf(keyHead * ratio + i) * C * C;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = warp * 16 + j * 4 + lane / 8;
            *reinterpret_cast<uint4 *>(to + row * C + lane % 8 * 8) =
                *reinterpret_cast<const uint4 *>(staged + place(row, lane % 8));
        }
        __syncwarp();
    }
}

// Describe rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next; where they begin, in units
// of 16 bytes, is added. A right operand whose rows are the columns of the result;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a · bᵀ, or d += it; 64 × 16 times 16 × 64, in the background, by a whole warpgroup.
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

// d += a · b, 64 × 16 times 16 × 128.
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

// Orders what this thread did to registers before the products that follow.
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
template <int COUNT> __device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// The factors of this thread's columns, in pairs.
__device__ __forceinline__ void readFactors(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
}

// A chunk in shared memory: tiles of 64 tokens, and the factors at the end.
constexpr unsigned KS = 0, QS = C * D * 2, VS = 2 * QS, MATRIX = VS + C * C * 2, SCORES = MATRIX + C * C * 2;
constexpr unsigned FACTORS = SCORES + C * C * 2, STAGE_BYTES = FACTORS + 4 * C * 4;
// Behind the ring, two buffers of outputs in turn, each two tiles of 32 columns.
constexpr unsigned OUTPUTS = STAGES * STAGE_BYTES, TILE_BYTES = C * 32 * 4, OUTPUT_BYTES = 2 * TILE_BYTES;

extern "C" __global__ void __launch_bounds__(160, 1)
    pass_state(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
               const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapMatrix,
               const __grid_constant__ TensorMap mapScores, const __grid_constant__ TensorMap mapOutput,
               const float *__restrict__ factors, const float *__restrict__ initial_state,
               float *__restrict__ final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES];
    unsigned char *ring = dynamicShared + (1024 - sharedAddress(dynamicShared) % 1024) % 1024;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    const int head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int chunks = (T + C - 1) / C;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4); // the warps that compute
        }
        fenceBarriers();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int keyColumn = head / (HV / HQ) * D, matrix = batch * HV + head;
            const unsigned ringAt = sharedAddress(ring);
            const auto copyTokens = [&](int chunk) {
                const int stage = chunk % STAGES, row = chunk * C;
                const unsigned to = ringAt + stage * STAGE_BYTES, barrier = full + 8 * stage;
                expectBytes(barrier, STAGE_BYTES);
                for (int half = 0; half < 2; ++half) {
                    copyBox(to + KS + half * 8192, mapK, keyColumn + half * 64, row, batch, barrier);
                    copyBox(to + QS + half * 8192, mapQ, keyColumn + half * 64, row, batch, barrier);
                }
                copyBox(to + VS, mapV, head * D + blockIdx.x * 64, row, batch, barrier);
                copyBox(to + MATRIX, mapMatrix, head * C, row, batch, barrier);
            };
            const auto copyPrepared = [&](int chunk) {
                const int stage = chunk % STAGES;
                const unsigned to = ringAt + stage * STAGE_BYTES, barrier = full + 8 * stage;
                copyBox(to + SCORES, mapScores, 0, chunk * C, matrix, barrier);
                copyBulk(to + FACTORS, factors + (size_t(matrix) * chunks + chunk) * 4 * C, 4 * C * 4, barrier);
            };
            // The ring is empty at first.
            const int first = min(STAGES, chunks);
            for (int chunk = 0; chunk < first; ++chunk)
                copyTokens(chunk);
            waitForParents();
            for (int chunk = 0; chunk < first; ++chunk)
                copyPrepared(chunk);
            for (int chunk = first; chunk < chunks; ++chunk) {
                waitPhase(empty + 8 * (chunk % STAGES), chunk / STAGES % 2 ^ 1);
                copyTokens(chunk);
                copyPrepared(chunk);
            }
        }
        return;
    }

    // The rows of Sᵀ in this thread: `column` and `column` + 8; its columns of 8-wide tiles: 2 · (lane % 4), and the next.
    const int column = blockIdx.x * 64 + warp * 16 + lane / 4, pair = lane % 4 * 2;
    const size_t stateAt = (size_t(batch) * HV + head) * D * D + column;

    float state[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8];

    const int valueRow = lane / 16 * 8 + lane % 8, valueChunk = 2 * warp + lane / 8 % 2;

    // The outputs: the tile of this pair of warps, where this thread's first one belongs in it, and who sends it.
    const unsigned outputTile = sharedAddress(ring) + OUTPUTS + warp / 2 * TILE_BYTES;
    const unsigned ownOutputs = outputTile + pair * 128 + ((warp % 2 * 4 + lane / 16) ^ pair) * 16 + lane / 4 % 4 * 4;
    const int outputColumn = head * D + blockIdx.x * 64 + warp / 2 * 32, outputBarrier = 1 + warp / 2;
    const bool sender = warp % 2 == 0 && lane == 0;

    unsigned left[8][4], rest[4][4], decayed[4][4];
    float updates[32], out[32] = {}; // the first chunk stages the zeros, but does not send them
    packOperands(left, state);

    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = chunk % STAGES;
        const unsigned vs = sharedAddress(ring) + stage * STAGE_BYTES + VS;
        // The same in all lanes, and known to be: descriptors live in uniform registers.
        const unsigned tiles = __shfl_sync(~0u, (sharedAddress(ring) + stage * STAGE_BYTES & 0x3ffff) >> 4, 0);
        const float *gates = reinterpret_cast<const float *>(ring + stage * STAGE_BYTES + FACTORS);
        waitPhase(full + 8 * stage, chunk / STAGES % 2);

        // Sᵀ times kᵀ, while the outputs of the chunk before are staged, and in its shadow times qᵀ.
        const unsigned buffer = chunk % 2 * OUTPUT_BYTES;
        hold(left);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            multiplyAlong(updates, left[step], ALONG + (tiles + (KS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
            stageOutputs(ownOutputs + buffer, step, out + 4 * step);
        }
        commitProducts();
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (QS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // R, the left operand of the product with a: what it takes of the values is ready before the product ends.
        unsigned values[4][4];
        float2 weight[8], both[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], vs + place(n * 16 + valueRow, valueChunk));
        readFactors(weight, gates + pair);
        readFactors(both, gates + C + pair);
        float known[32];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const unsigned upper = values[i / 2][i % 2 * 2], lower = values[i / 2][i % 2 * 2 + 1];
            known[4 * i] = weight[i].x * lowOf(upper);
            known[4 * i + 1] = weight[i].y * highOf(upper);
            known[4 * i + 2] = weight[i].x * lowOf(lower);
            known[4 * i + 3] = weight[i].y * highOf(lower);
        }
        hold(known);
        waitProducts<1>();
        hold(updates);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float *u = updates + 4 * i, *v = known + 4 * i;
            rest[i / 2][i % 2 * 2] = pack(v[0] - both[i].x * u[0], v[1] - both[i].y * u[1]);
            rest[i / 2][i % 2 * 2 + 1] = pack(v[2] - both[i].x * u[2], v[3] - both[i].y * u[3]);
        }

        // The updates; the outputs before leave and the state decays meanwhile.
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (tiles + (MATRIX + step * 32) / 16), step > 0);
        commitProducts();
        sendOutputs(outputTile + buffer, mapOutput, outputColumn, (chunk - 1) * C, batch, outputBarrier, sender);
        const float forget = gates[4 * C - 1];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= forget;
        float2 faded[8];
        readFactors(faded, gates + 2 * C + pair);
        waitProducts<0>();
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // Sᵀ takes them up, and so do the outputs.
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float *u = updates + 4 * n;
            decayed[n / 2][n % 2 * 2] = pack(u[0] * faded[n].x, u[1] * faded[n].y);
            decayed[n / 2][n % 2 * 2 + 1] = pack(u[2] * faded[n].x, u[3] * faded[n].y);
        }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], ACROSS + (tiles + (KS + step * 2048) / 16));
        commitProducts();
        packOperands(rest, updates);
        float2 decay[8];
        readFactors(decay, gates + 3 * C + pair);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float2 factor = make_float2(scale * decay[n].x, scale * decay[n].y);
            out[4 * n] *= factor.x;
            out[4 * n + 1] *= factor.y;
            out[4 * n + 2] *= factor.x;
            out[4 * n + 3] *= factor.y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
        commitProducts();
        waitProducts<1>();
        hold(state);
        hold(decayed);
        packOperands(left, state);
        waitProducts<0>();
        hold(out);
        hold(rest);
        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
    }

    // The outputs of the last chunk.
    const unsigned buffer = chunks % 2 * OUTPUT_BYTES;
#pragma unroll
    for (int group = 0; group < 8; ++group)
        stageOutputs(ownOutputs + buffer, group, out + 4 * group);
    sendOutputs(outputTile + buffer, mapOutput, outputColumn, (chunks - 1) * C, batch, outputBarrier, sender);

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[stateAt + (i / 4 * 8 + pair + i % 2) * D + i % 4 / 2 * 8] = state[i];

    if (sender)
        waitStores(); // shared memory stays until it has been read
}
