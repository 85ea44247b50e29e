// Before: the first histogram has bins over the whole range of the type, of which the keys fill a few.
//   atomicAdd(&bins[255 - (key[e] >> 24 & 255)], 1);     // then digit by digit, 8 bits each

// After: bins over [bound, maximum] only. The least of the r-th largest of disjoint groups is no more than the K-th
// largest element, if groups * r >= K. Adapt: the group (here 8 elements, r = 1: 4 of a thread and 4 of its
// neighbour), and the fallback to the least key. Keys are unsigned; 0 stands for no element.
constexpr int LOG = 10, BINS = 1 << LOG, PER = BINS / THREADS, WARPS = THREADS / 32;
__shared__ __align__(16) unsigned bins[BINS];   // set to 0 before the first barrier
__shared__ uint2 spans[WARPS];
__shared__ unsigned totals[WARPS];

unsigned most = max(max(key[0], key[1]), max(key[2], key[3]));
unsigned least = max(most, __shfl_xor_sync(0xffffffff, most, 1));
if (least == 0)
    least = 0xffffffff;             // an empty group has no say
if (K > (N + 7) / 8) {              // too few groups: the least key is the bound
    least = 0xffffffff;
#pragma unroll
    for (int e = 0; e < 4; ++e)
        least = min(least, key[e] - 1);  // no element (0) becomes the largest
    least += least != 0xffffffff;
}
least = __reduce_min_sync(0xffffffff, least);
most = __reduce_max_sync(0xffffffff, most);
if (lane == 0)
    spans[warp] = make_uint2(least, most);
__syncthreads();
const uint2 span = spans[lane];     // 32 warps; otherwise lane % WARPS
unsigned top = __reduce_max_sync(0xffffffff, span.y);
unsigned range = top - __reduce_min_sync(0xffffffff, span.x);
int shift = max(0, 32 - __clz(range) - LOG);
unsigned last = range >> shift;     // the last bin of the window

unsigned need = K;
while (true) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const unsigned bin = (top - key[e]) >> shift;   // what is above the window wraps around, and is left out
        if (bin <= last)
            atomicAdd(&bins[bin], 1);
    }
    __syncthreads();
    // All threads scan the bins, the largest keys first; one warp would be slow for so many bins.
    unsigned count[PER], sum = 0;
#pragma unroll
    for (int b = 0; b < PER; ++b) {
        count[b] = bins[tid * PER + b];
        sum += count[b];
    }
    unsigned running = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffff, running, step);
        running += lane >= step ? other : 0;
    }
    if (lane == 31)
        totals[warp] = running;
    __syncthreads();
    const unsigned total = totals[lane % WARPS];
    running += __reduce_add_sync(0xffffffff, lane < warp ? total : 0) - sum;
#pragma unroll
    for (int b = 0; b < PER; ++b) {
        if (running < need && need <= running + count[b])
            found = {unsigned(tid * PER + b), running, count[b]};
        running += count[b];
    }
    __syncthreads();
    cut = found;
    need -= cut.before;
    settled = shift == 0;
    if (settled || cut.count <= FEW)
        break;
    // Seldom: once more in the window of that bin.
    top -= cut.bin << shift;
    last = (1u << min(shift, LOG)) - 1;
    shift = max(0, shift - LOG);
#pragma unroll
    for (int b = 0; b < PER; ++b)
        bins[tid + b * THREADS] = 0;
    __syncthreads();
}
const unsigned high = top - (cut.bin << shift), width = (1u << shift) - 1;  // of the bin
// key > high: chosen for sure.   high - key <= width (unsigned): in the bin, to be decided among few.
