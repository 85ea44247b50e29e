/*klineage
surface = "cuda"

[[workspace]]
name = "tiles"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64)", "8448"]
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
l2_promotion = "128B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "gdn_prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "52224"
args = ["tm_q", "tm_k", "g", "beta", "tiles", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["D / 64", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "tiles", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. gdn_prepare does what needs no state, for all chunks at once; gdn_scan
// goes from chunk to chunk with the transposed state in the accumulators of a warpgroup.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// A record, one a (batch, value head, chunk): both tiles as they lie in shared memory, rows of 128 bytes, the 16-byte
// chunk c of row r at c ^ (r % 8); then exp(G[t]) and exp(G[63] - G[t]) as floats.
constexpr int TILE = 8192, RECORD = 2 * TILE + 512;

extern __shared__ unsigned char dynamicShared[];

static __device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

static __device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int d, int head, int token, int batch,
                                               unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(map), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void copyBoxOnce(unsigned to, const TensorMap *map, int d, int head, int token,
                                                   int batch, unsigned barrier, unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
                 "l"(map), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(barrier), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void storeBox(const TensorMap *map, int d, int head, int token, int batch, unsigned from,
                                                unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint "
                 "[%0, {%1, %2, %3, %4}], [%5], %6;" ::"l"(map),
                 "r"(d), "r"(head), "r"(token), "r"(batch), "r"(from), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void commitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
static __device__ __forceinline__ void waitStoresRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
static __device__ __forceinline__ void waitStores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
static __device__ __forceinline__ void fenceAsync()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ unsigned long long evictFirst()
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// The first number in the lower half.
static __device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

static __device__ __forceinline__ unsigned tf32(float value)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

static __device__ __forceinline__ void loadMatrices(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void loadTransposed(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// ------------------------------------------------------------------------------------------------ what needs no state

static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

constexpr int PITCH = 68;

// 16 x 16 of -C^-1 B A^-1, at (row, column) of the SIDE x SIDE block. A^-1 lies at (first, first) of m, B below it, C^-1 to
// the right of B; all of them are numbers of tf32 already. Nothing above the diagonal blocks of 16 is read.
template <int SIDE>
static __device__ __forceinline__ void mergeBlocks(float (&block)[2][4], const float *m, int first, int row, int column,
                                                   int lane)
{
    const int g = lane / 4, c = lane % 4;
    float product[SIDE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIDE; k += 8) {
        if (k >= row + 16)
            continue;
        const float *from = m + (first + SIDE + row + g) * PITCH + first + SIDE + k + c;
        const unsigned left[4] = {__float_as_uint(from[0]), __float_as_uint(from[8 * PITCH]), __float_as_uint(from[4]),
                                  __float_as_uint(from[8 * PITCH + 4])};
#pragma unroll
        for (int n = 0; n < SIDE / 8; ++n) {
            if (8 * n < column)
                continue;
            const float *right = m + (first + SIDE + k + c) * PITCH + first + 8 * n + g;
            multiplyTf32(product[n], left, __float_as_uint(right[0]), __float_as_uint(right[4 * PITCH]));
        }
    }
#pragma unroll
    for (int n = 0; n < SIDE / 8; ++n) {
        if (8 * n < column)
            continue;
        // Columns 2c and 2c + 1 of the product are numbers c and c + 4 of the sum, on both sides.
        const unsigned left[4] = {tf32(-product[n][0]), tf32(-product[n][2]), tf32(-product[n][1]), tf32(-product[n][3])};
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const float *right = m + (first + 8 * n + 2 * c) * PITCH + first + column + 8 * j + g;
            multiplyTf32(block[j], left, __float_as_uint(right[0]), __float_as_uint(right[PITCH]));
        }
    }
}

// 16 x 16 of the inverse, times beta of the column, to the solution's tile.
static __device__ __forceinline__ void storeSolution(unsigned char *solution, const float (&block)[2][4], const float *weight,
                                                     int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const float2 w = *reinterpret_cast<const float2 *>(weight + column + 8 * j + 2 * c);
        const int place = ((column / 8 + j) ^ g) * 16 + c * 4;
        *reinterpret_cast<unsigned *>(solution + (row + g) * 128 + place) = pack(block[j][0] * w.x, block[j][1] * w.y);
        *reinterpret_cast<unsigned *>(solution + (row + g + 8) * 128 + place) = pack(block[j][2] * w.x, block[j][3] * w.y);
    }
}

extern "C" __global__ void __launch_bounds__(128, 4)
    gdn_prepare(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *gates,
                const float *betas, unsigned char *tiles, int T, int HQ, int HV, float scale)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    __shared__ __align__(16) float sumsOf[4][64];
    __shared__ __align__(16) float betasOf[4][64];
    __shared__ __align__(8) unsigned long long barrierOf[1];

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int g = lane / 4, c = lane % 4;
    const int group = blockIdx.x, chunks = gridDim.y, chunk = chunks - 1 - int(blockIdx.y), batch = blockIdx.z;
    const int ratio = HV / HQ, firstToken = chunk * 64;

    // K and Q at first; then two records that take turns. The triangular system behind them.
    const unsigned raw = sharedAddress(dynamicShared), base = (raw + 1023) & ~1023u;
    unsigned char *room = dynamicShared + (base - raw);
    float *m = reinterpret_cast<float *>(room + 2 * RECORD);
    const unsigned barrier = sharedAddress(barrierOf);

    if (thread == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 4 * TILE);
        copyBox(base, &mapK, 0, group, firstToken, batch, barrier);
        copyBox(base + TILE, &mapK, 64, group, firstToken, batch, barrier);
        copyBox(base + 2 * TILE, &mapQ, 0, group, firstToken, batch, barrier);
        copyBox(base + 3 * TILE, &mapQ, 64, group, firstToken, batch, barrier);
    }
    __syncthreads();

    // Warp w has row w of the 4 x 4 blocks of K K^T and row 3 - w of Q K^T, up to the diagonal: five blocks.
    float blocks[5][2][4] = {};

    for (int i = 0; i < ratio; ++i) {
        const int slot = i % 4;
        if (slot == 0) {
            if (i + warp < ratio) {
                const int head = group * ratio + i + warp;
                float a[2], b[2];
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int token = firstToken + 2 * lane + j;
                    a[j] = b[j] = 0.0f;
                    if (token < T) {
                        const unsigned long long at = ((unsigned long long)batch * T + token) * HV + head;
                        a[j] = gates[at];
                        b[j] = betas[at];
                    }
                }
                float scan = a[0] + a[1];
#pragma unroll
                for (int d = 1; d < 32; d *= 2) {
                    const float other = __shfl_up_sync(~0u, scan, d);
                    if (lane >= d)
                        scan += other;
                }
                float before = __shfl_up_sync(~0u, scan, 1);
                if (lane == 0)
                    before = 0.0f;
                *reinterpret_cast<float2 *>(&sumsOf[warp][2 * lane]) = make_float2(before + a[0], scan);
                *reinterpret_cast<float2 *>(&betasOf[warp][2 * lane]) = make_float2(b[0], b[1]);
            }
            if (i == 0) {
                waitPhase(barrier, 0);
                __syncwarp();
                const unsigned leftRow = warp * 16 + lane % 16, otherRow = (3 - warp) * 16 + lane % 16;
                const unsigned rightRow = lane / 16 * 8 + lane % 8;
#pragma unroll
                for (int step = 0; step < 8; ++step) {
                    const unsigned box = base + step / 4 * TILE;
                    const unsigned leftChunk = ((2 * step % 8 + lane / 16) ^ (lane % 8)) * 16;
                    const unsigned rightChunk = ((2 * step % 8 + lane / 8 % 2) ^ (lane % 8)) * 16;
                    unsigned left[4], other[4];
                    loadMatrices(left, box + leftRow * 128 + leftChunk);
                    loadMatrices(other, box + 2 * TILE + otherRow * 128 + leftChunk);
#pragma unroll
                    for (int b = 0; b < 5; ++b) {
                        const int n = b <= warp ? b : b - warp - 1;
                        unsigned right[4];
                        loadMatrices(right, box + (n * 16 + rightRow) * 128 + rightChunk);
                        if (b <= warp) {
                            multiply(blocks[b][0], left, right[0], right[1]);
                            multiply(blocks[b][1], left, right[2], right[3]);
                        } else {
                            multiply(blocks[b][0], other, right[0], right[1]);
                            multiply(blocks[b][1], other, right[2], right[3]);
                        }
                    }
                }
                __syncthreads();
                // What lies above the diagonal blocks of the tiles stays zero from here on.
                for (int j = thread; j < 2 * RECORD / 16; j += 128)
                    reinterpret_cast<uint4 *>(room)[j] = make_uint4(0, 0, 0, 0);
            }
            __syncthreads();
        }

        const int head = group * ratio + i;
        const float *sums = sumsOf[slot], *weights = betasOf[slot];
        unsigned char *solution = room + i % 2 * RECORD, *scores = solution + TILE;

        // The system and the scores.
        float systemSum[2], systemBeta[2], scoreSum[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            systemSum[h] = sums[warp * 16 + g + 8 * h];
            systemBeta[h] = weights[warp * 16 + g + 8 * h];
            scoreSum[h] = sums[(3 - warp) * 16 + g + 8 * h];
        }
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            if (b <= warp) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int column = b * 16 + j * 8 + 2 * c;
                    const float2 sum = *reinterpret_cast<const float2 *>(sums + column);
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const int row = warp * 16 + g + 8 * h;
                        float x = systemBeta[h] * __expf(systemSum[h] - sum.x) * blocks[b][j][2 * h];
                        float y = systemBeta[h] * __expf(systemSum[h] - sum.y) * blocks[b][j][2 * h + 1];
                        if (b == warp) {
                            x = column < row ? x : 0.0f;
                            y = column + 1 < row ? y : 0.0f;
                        } else { // right operands of the merges
                            x = __uint_as_float(tf32(x));
                            y = __uint_as_float(tf32(y));
                        }
                        *reinterpret_cast<float2 *>(m + row * PITCH + column) = make_float2(x, y);
                    }
                }
            } else {
                const int n = b - warp - 1;
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int column = n * 16 + j * 8 + 2 * c;
                    const float2 sum = *reinterpret_cast<const float2 *>(sums + column);
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const int row = (3 - warp) * 16 + g + 8 * h;
                        float x = scale * __expf(scoreSum[h] - sum.x) * blocks[b][j][2 * h];
                        float y = scale * __expf(scoreSum[h] - sum.y) * blocks[b][j][2 * h + 1];
                        x = column <= row ? x : 0.0f;
                        y = column + 1 <= row ? y : 0.0f;
                        *reinterpret_cast<unsigned *>(scores + row * 128 + ((2 * n + j) ^ g) * 16 + c * 4) = pack(x, y);
                    }
                }
            }
        }
        __syncwarp();

        // The inverse of the warp's block of the diagonal, a lane a column (twice), by substitution.
        {
            float *diagonal = m + warp * 16 * PITCH + warp * 16;
            const int column = lane % 16;
            float x[16];
#pragma unroll
            for (int r = 0; r < 16; ++r) {
                float sum = r == column ? 1.0f : 0.0f;
#pragma unroll
                for (int k = 0; k < r; k += 4) {
                    const float4 row = *reinterpret_cast<const float4 *>(diagonal + r * PITCH + k);
                    sum -= row.x * x[k];
                    if (k + 1 < r)
                        sum -= row.y * x[k + 1];
                    if (k + 2 < r)
                        sum -= row.z * x[k + 2];
                    if (k + 3 < r)
                        sum -= row.w * x[k + 3];
                }
                x[r] = sum;
            }
            __syncwarp();
            if (lane < 16) {
#pragma unroll
                for (int r = 0; r < 16; ++r)
                    diagonal[r * PITCH + column] = __uint_as_float(tf32(x[r]));
            }
        }
        __syncthreads();

        // 16 to 32 by two warps; the others take the diagonal blocks to the solution, and the decays.
        if (warp < 2) {
            const int first = warp * 32;
            float block[2][4] = {};
            mergeBlocks<16>(block, m, first, 0, 0, lane);
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float *to = m + (first + 16 + g) * PITCH + first + 8 * j + 2 * c;
                *reinterpret_cast<float2 *>(to) =
                    make_float2(__uint_as_float(tf32(block[j][0])), __uint_as_float(tf32(block[j][1])));
                *reinterpret_cast<float2 *>(to + 8 * PITCH) =
                    make_float2(__uint_as_float(tf32(block[j][2])), __uint_as_float(tf32(block[j][3])));
            }
            storeSolution(solution, block, weights, first + 16, first, lane);
        } else {
            const int t = thread - 64;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int e = t + 64 * j, row = e / 2, column = e / 32 * 16 + e % 2 * 8;
                const float4 x = *reinterpret_cast<const float4 *>(m + row * PITCH + column);
                const float4 y = *reinterpret_cast<const float4 *>(m + row * PITCH + column + 4);
                const float4 u = *reinterpret_cast<const float4 *>(weights + column);
                const float4 w = *reinterpret_cast<const float4 *>(weights + column + 4);
                *reinterpret_cast<uint4 *>(solution + row * 128 + ((column / 8) ^ (row % 8)) * 16) =
                    make_uint4(pack(x.x * u.x, x.y * u.y), pack(x.z * u.z, x.w * u.w), pack(y.x * w.x, y.y * w.y),
                               pack(y.z * w.z, y.w * w.w));
            }
            float *factors = reinterpret_cast<float *>(solution + 2 * TILE);
            factors[t] = __expf(sums[t]);
            factors[64 + t] = __expf(sums[63] - sums[t]);
        }
        __syncthreads();

        // 32 to 64 by all warps; the result goes to the solution alone.
        {
            const int row = warp / 2 * 16, column = warp % 2 * 16;
            float block[2][4] = {};
            mergeBlocks<32>(block, m, 0, row, column, lane);
            storeSolution(solution, block, weights, 32 + row, column, lane);
        }

        // The record leaves; the one before has been read when all have passed the barrier, so that its room is free.
        fenceAsync();
        if (thread == 0)
            waitStoresRead();
        __syncthreads();
        if (thread == 0) {
            const unsigned long long record = ((unsigned long long)batch * HV + head) * chunks + chunk;
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(tiles + record * RECORD),
                         "r"(base + i % 2 * RECORD), "r"(RECORD)
                         : "memory");
            commitStores();
        }
    }
    if (thread == 0)
        waitStores();
}

// ------------------------------------------------------------------------------------------------ from chunk to chunk

// A stage: K and Q as two boxes of 64 columns each, 64 columns of V, the record.
constexpr int K_AT = 0, Q_AT = 16384, V_AT = 32768, SOLUTION_AT = 40960, SCORES_AT = 49152, FACTORS_AT = 57344;
constexpr int STAGE = 58368, STAGES = 3, STAGE_BYTES = 40960 + RECORD;
constexpr int BOX = 8192; // 64 tokens of 32 floats; two boxes a chunk, and two chunks take turns

// Rows of 128 bytes with the 128-byte swizzle. ALONG: the columns are summed over; ACROSS: the rows are, and the next 64
// columns lie a tile further.
constexpr unsigned long long ALONG = (1ull << 16) | ((1024ull >> 4) << 32) | (1ull << 62);
constexpr unsigned long long ACROSS = ((8192ull >> 4) << 16) | ((1024ull >> 4) << 32) | (1ull << 62);

template <int N> static __device__ __forceinline__ void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> static __device__ __forceinline__ void hold(unsigned (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("" : "+r"(x[i][j])::"memory");
}

static __device__ __forceinline__ void fenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> static __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

#define SUMS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(d, i) SUMS4(d, i), SUMS4(d, i + 4), SUMS4(d, i + 8), SUMS4(d, i + 12)

// d (64 x 64) = or += a (64 x 16) b^T
static __device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b,
                                                     int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
                 "}"
                 : SUMS16(d, 0), SUMS16(d, 16)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d (64 x 128) += a (64 x 16) b, b 16 rows of both tiles
static __device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
                 "}"
                 : SUMS16(d, 0), SUMS16(d, 16), SUMS16(d, 32), SUMS16(d, 48)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

static __device__ __forceinline__ void loadPair(float &x, float &y, unsigned address)
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}

extern "C" __global__ void __launch_bounds__(160, 1)
    gdn_scan(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
             const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapOut, const unsigned char *tiles,
             const float *initialState, float *finalState, int T, int HQ, int HV, float scale)
{
    __shared__ __align__(8) unsigned long long barriersOf[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    const int part = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + 63) / 64;
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u, boxes = ring + STAGES * STAGE;
    const unsigned full = sharedAddress(barriersOf), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) { // the copying warp
        if (lane == 0) {
            const int headQ = head / (HV / HQ);
            const unsigned long long policy = evictFirst();
            const unsigned char *record = tiles + ((unsigned long long)batch * HV + head) * chunks * RECORD;
            const auto copyInputs = [&](int chunk, int stage) {
                const unsigned to = ring + stage * STAGE, barrier = full + 8 * stage;
                expectBytes(barrier, STAGE_BYTES);
                copyBox(to + K_AT, &mapK, 0, headQ, chunk * 64, batch, barrier);
                copyBox(to + K_AT + 8192, &mapK, 64, headQ, chunk * 64, batch, barrier);
                copyBox(to + Q_AT, &mapQ, 0, headQ, chunk * 64, batch, barrier);
                copyBox(to + Q_AT + 8192, &mapQ, 64, headQ, chunk * 64, batch, barrier);
                copyBoxOnce(to + V_AT, &mapV, part * 64, head, chunk * 64, batch, barrier, policy);
            };
            const auto copyRecord = [&](int chunk, int stage) {
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                                 ring + stage * STAGE + SOLUTION_AT),
                             "l"(record + (unsigned long long)chunk * RECORD), "r"(RECORD), "r"(full + 8 * stage)
                             : "memory");
            };
            const int ahead = chunks < STAGES ? chunks : STAGES;
            for (int chunk = 0; chunk < ahead; ++chunk)
                copyInputs(chunk, chunk);
            // The launch before has ended, and its records are there.
            asm volatile("griddepcontrol.wait;" ::: "memory");
            for (int chunk = 0; chunk < ahead; ++chunk)
                copyRecord(chunk, chunk);
            for (int chunk = ahead; chunk < chunks; ++chunk) {
                const int stage = chunk % STAGES;
                waitPhase(empty + 8 * stage, (chunk / STAGES - 1) & 1);
                copyInputs(chunk, stage);
                copyRecord(chunk, stage);
            }
        }
        return;
    }

    // The warpgroup. Number i of 64 (32) of a thread is at row warp * 16 + g + i % 4 / 2 * 8, a column of values, and at
    // i / 4 * 8 + 2 c + i % 2, a key (a token).
    const int g = lane / 4, c = lane % 4;
    const unsigned long long policy = evictFirst();
    float state[64], next[32], out[32], decay[16], gate[16], carry;
    unsigned left[8][4], rest[4][4], update[4][4];

    const unsigned long long stateAt =
        ((unsigned long long)batch * HV + head) * 16384 + 2 * c * 128 + part * 64 + warp * 16 + g;
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initialState[stateAt + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        next[i] = out[i] = 0.0f;

    const unsigned valuesAt =
        V_AT + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;
    const unsigned ringUnits = __shfl_sync(~0u, (ring & 0x3ffff) >> 4, 0);
    unsigned boxAt[2][2]; // rows of values 8 h, tokens j
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            boxAt[h][j] = boxes + warp / 2 * BOX + (2 * c + j) * 128 +
                          ((warp % 2 * 4 + 2 * h + lane / 16) ^ (2 * c + j)) * 16 + g % 4 * 4;

    const auto packState = [&]() {
#pragma unroll
        for (int i = 0; i < 32; ++i)
            left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        hold(left);
    };

    // d = S^T times the tile's transpose, for K and Q.
    const auto ask = [&](float (&d)[32], unsigned units) {
        hold(d);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(d, left[step], ALONG + (units + (step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();
    };

    // From the answer for K, with that for Q under way, to the updates in next.
    const auto solve = [&](int stage) {
        const unsigned at = ring + stage * STAGE, units = ringUnits + stage * (STAGE / 16);
        unsigned values[4][4];
#pragma unroll
        for (int p = 0; p < 4; ++p)
            loadTransposed(values[p], at + valuesAt + p * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            loadPair(gate[2 * n], gate[2 * n + 1], at + FACTORS_AT + c * 8 + n * 32);
        waitProducts<1>();
        hold(next);
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int i = 8 * p + 2 * r, n = 2 * p + r / 2;
                const float low = __uint_as_float(values[p][r] << 16);
                const float high = __uint_as_float(values[p][r] & 0xffff0000u);
                rest[p][r] = pack(low - gate[2 * n] * next[i], high - gate[2 * n + 1] * next[i + 1]);
            }
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (units + (SOLUTION_AT + step * 32) / 16), step > 0);
        commitProducts();
#pragma unroll
        for (int n = 0; n < 8; ++n)
            loadPair(decay[2 * n], decay[2 * n + 1], at + FACTORS_AT + 256 + c * 8 + n * 32);
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(carry) : "r"(at + FACTORS_AT + 63 * 4) : "memory");
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= carry;
        hold(state);
        waitProducts<0>();
        hold(next);
        hold(out);
        hold(left);
        hold(rest);
    };

    // From the updates to the next state, and to the outputs in its shadow: two groups, neither waited for.
    const auto advance = [&](int stage) {
        const unsigned units = ringUnits + stage * (STAGE / 16);
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int i = 8 * p + 2 * r, n = 2 * p + r / 2;
                update[p][r] = pack(next[i] * decay[2 * n], next[i + 1] * decay[2 * n + 1]);
            }
        hold(update);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (units + (K_AT + step * 2048) / 16));
        commitProducts();
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float x = gate[2 * n] * scale, y = gate[2 * n + 1] * scale;
            out[4 * n] *= x;
            out[4 * n + 1] *= y;
            out[4 * n + 2] *= x;
            out[4 * n + 3] *= y;
        }
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                rest[p][r] = pack(next[8 * p + 2 * r], next[8 * p + 2 * r + 1]);
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (units + (SCORES_AT + step * 32) / 16), 1);
        commitProducts();
    };

    // The outputs to the boxes whose turn it is, which are free since the barrier of the chunk before.
    const auto stageOutputs = [&](int chunk) {
        const unsigned turn = (chunk & 1) * (2 * BOX);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(boxAt[i % 4 / 2][i % 2] + turn + i / 4 * 1024), "f"(out[i])
                         : "memory");
    };

    const auto storeOutputs = [&](int chunk) {
        fenceAsync();
        if (thread == 0)
            waitStoresRead(); // those of the chunk before
        __syncwarp();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (thread == 0) {
            const unsigned from = boxes + (chunk & 1) * (2 * BOX);
            storeBox(&mapOut, part * 64, head, chunk * 64, batch, from, policy);
            storeBox(&mapOut, part * 64 + 32, head, chunk * 64, batch, from + BOX, policy);
            commitStores();
        }
        __syncwarp();
    };

    packState();
    waitPhase(full, 0);
    __syncwarp();
    ask(next, ringUnits + K_AT / 16);
    ask(out, ringUnits + Q_AT / 16);
    solve(0);

    int stage = 0, parity = 0;
    for (int chunk = 0; chunk < chunks - 1; ++chunk) {
        advance(stage);

        const int before = stage;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
        const unsigned units = ringUnits + stage * (STAGE / 16);
        waitPhase(full + 8 * stage, parity);
        __syncwarp();

        waitProducts<1>(); // the state
        hold(state);
        hold(update);
        packState();
        ask(next, units + K_AT / 16);

        waitProducts<1>(); // the outputs of the chunk before
        hold(out);
        hold(rest);
        if (lane == 0)
            arrive(empty + 8 * before);
        __syncwarp();
        stageOutputs(chunk);
        ask(out, units + Q_AT / 16);
        storeOutputs(chunk);

        solve(stage);
    }

    advance(stage);
    waitProducts<0>();
    hold(state);
    hold(update);
    hold(out);
    hold(rest);
    stageOutputs(chunks - 1);
    storeOutputs(chunks - 1);
#pragma unroll
    for (int i = 0; i < 64; ++i)
        finalState[stateAt + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8] = state[i];
    if (thread == 0)
        waitStores();
}
