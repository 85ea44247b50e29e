// Before: 1024 threads, 4 elements each, one load of 16 bytes.
//   unsigned key[4];  for (int e = 0; e < 4; ++e) ...;   // position 4 * tid + e

// After: 512 threads, 8 elements each. THREADS * COUNT stays the same; everything else follows from the two.
constexpr int THREADS = 512;
constexpr int COUNT = 8;                    // elements a thread, a multiple of 4
constexpr int WARPS = THREADS / 32;
constexpr int PER = BINS / THREADS;         // table entries a thread clears and sums up: twice as many as before
static_assert(BINS % THREADS == 0 && COUNT % 4 == 0);

// Vectors of a thread lie THREADS apart, so that each load of a warp stays coalesced.
const auto columnOf = [tid](int element) { return 4 * (tid + element / 4 * THREADS) + element % 4; };
float value[COUNT];                         // filled with what stands for no element
#pragma unroll
for (int v = 0; v < COUNT / 4; ++v)         // independent loads, all under way together
    if (columnOf(4 * v) < N)
        *reinterpret_cast<float4 *>(value + 4 * v) =
            __ldcs(reinterpret_cast<const float4 *>(values + columnOf(4 * v)));

// Steps across threads become steps within a thread: reduce the COUNT elements in registers first, and take one
// shuffle less.
unsigned most = max(key[0], key[1]);
#pragma unroll
for (int e = 2; e < COUNT; e += 2)
    most = max(most, max(key[e], key[e + 1]));
most = __reduce_max_sync(0xffffffff, most);
if (lane == 0)
    spans[warp] = most;
__syncthreads();
const unsigned all = __reduce_max_sync(0xffffffff, spans[lane % WARPS]);   // there are fewer warps than lanes now

// Scans over a table: PER entries in registers, then across half as many warps.
unsigned count[PER], sum = 0;
#pragma unroll
for (int b = 0; b < PER; ++b) {
    count[b] = bins[tid * PER + b];
    sum += count[b];
}
// Wherever a group of elements was formed by lanes, its size in lanes halves: check bounds that count groups.
