// Before: atomics under a condition, and a loop that looks for the ends of the element's own bin, with a break.
//   if (bin <= last) number = atomicAdd(&bins[bin], 1);
//   for (j = start; j < filled; ++j) { if (binOf(chosen[j]) != start) break; place += chosen[j] > element; }

// After 1: spare bins in place of a branch. What is outside the window counts in a bin of its lane, whose count
// begins at a number that no limit reaches. Adapt: COUNT elements a thread, BINS + 32 bins.
constexpr unsigned FAR = 1u << 30;              // a place that is never filled
if (tid < 32)
    bins[BINS + tid] = FAR;                     // with the clearing of the bins, before a barrier
unsigned bin[COUNT], place[COUNT];
#pragma unroll
for (int e = 0; e < COUNT; ++e) {
    bin[e] = min((top - key[e]) >> shift, BINS + lane);
    place[e] = atomicAdd(&bins[bin[e]], 1);     // COUNT independent atomics, no branch
}
__syncthreads();

// After 2: the scan over the bins also knows the largest bin before that of the threshold.
unsigned largest = 0;
#pragma unroll
for (int b = 0; b < PER; ++b) {
    const unsigned inside = above.count[b];
    if (running + inside < need)
        largest = max(largest, inside);
    if (need - 1 - running < inside)            // one unsigned comparison for running < need <= running + inside
        found = make_uint4(tid * PER + b, running, inside, 0);
    above.count[b] = running;
    running += inside;
}
*mine = above;                                  // the bins of a thread as one vector
largest = __reduce_max_sync(0xffffffff, largest);
if (lane == 0 && largest > 1)
    atomicMax(&crowd, largest);                 // crowd is 0 before
__syncthreads();
#pragma unroll
for (int e = 0; e < COUNT; ++e)
    place[e] += bins[bin[e]];                   // all loads first, then the stores of those below the limit
#pragma unroll
for (int e = 0; e < COUNT; ++e)
    if (place[e] < limit) {
        keys[first + place[e]] = key[e];
        columns[first + place[e]] = columnOf(e);
    }
__syncthreads();

// After 3: the bins are in order, so neighbours of another bin change nothing. Compare with all that are less far
// away than the largest bin is long, without a look for the bin's ends; equal ones keep their places.
const unsigned sure = settled ? K : first, distance = crowd;
#pragma unroll 1
for (unsigned i = tid; i < sure; i += THREADS) {
    const unsigned element = keys[i];
    unsigned to = i;
#pragma unroll 1
    for (unsigned d = 1; d < distance; d += 4) {
#pragma unroll
        for (unsigned near = 0; near < 4; ++near) {
            to += i + d + near < sure && keys[i + d + near] > element;
            to -= i >= d + near && keys[i - d - near] < element;
        }
    }
    out[to] = valueOf(element);
    position[to] = columns[i];
}

// After 4: the bin of the threshold may hold many more. A warp ranks one of its elements at a time, by votes.
#pragma unroll 1
for (unsigned i = warp; i < count; i += WARPS) {
    const unsigned element = keys[first + i];
    unsigned rank = 0;
    for (unsigned begin = 0; begin < count; begin += 32) {
        const unsigned j = begin + lane;
        const unsigned other = j < count ? keys[first + j] : 0;
        rank += __popc(__ballot_sync(0xffffffff, other > element || (other == element && j < i)));
    }
    if (lane == 0 && rank < need) {
        out[first + rank] = valueOf(element);
        position[first + rank] = columns[first + i];
    }
}
