// Before: the histogram only tells the bin of the threshold; the chosen are collected by two more counters, in no
// order, and each is ranked against all that are chosen.
//   atomicAdd(&bins[bin], 1);                            // what it returns is thrown away
//   if (key[e] > high) place = atomicAdd(&above, 1);     // all threads on one counter
//   for (j = 0; j < filled; ++j) rank += keys[j] > element || (keys[j] == element && j < i);

// After: what the counting atomic returns is the number within the bin, the scan gives where the bin begins.
// Adapt: four keys a thread, PER bins a thread, 16 bits for a position and for the begin of a bin.
// claim: { .reg .pred inside;  setp.le.u32 inside, %2, %3;  @inside atom.shared.add.u32 %0, [%1], 1; }
//   with %0 the number, 0 before; %1 the bin's address in shared memory; %2 the bin; %3 the last bin of the window
unsigned number[4];
#pragma unroll
for (int e = 0; e < 4; ++e)                 // predicated, so that the four atomics are under way together
    number[e] = claim(bins, (top - key[e]) >> shift, last);   // the building block
__syncthreads();

// The scan over the bins, the largest keys first: `running` is the number in the bins before. Keep it in their place.
#pragma unroll
for (int b = 0; b < PER; ++b) {
    if (running < need && need <= running + count[b])
        found = {unsigned(tid * PER + b), running, count[b]};
    bins[tid * PER + b] = running;
    running += count[b];
}
__syncthreads();

// Places of all down to the bin of the threshold, with no further atomic.
cut = found;
const bool few = shift == 0 || cut.count <= FEW;
const unsigned limit = shift == 0 ? need : few ? cut.before + cut.count : cut.before;
unsigned begin[4];
#pragma unroll
for (int e = 0; e < 4; ++e) {
    const unsigned bin = (top - key[e]) >> shift;
    begin[e] = bins[min(bin, cut.bin)];
    number[e] = bin <= cut.bin ? begin[e] + number[e] : 0xffffffff;
}
#pragma unroll
for (int e = 0; e < 4; ++e)
    if (number[e] < limit)                  // beside each position, where its bin begins
        chosen[first + number[e]] = make_uint2(key[e], (first + begin[e]) << 16 | (4 * tid + e));
filled = first + limit;
__syncthreads();
first += cut.before;                        // for the next window, if the bin holds too many
need -= cut.before;

// The bins are in order: rank an element only against those of its own bin, all of them.
for (unsigned i = tid; i < filled; i += THREADS) {
    const uint2 element = chosen[i];
    const unsigned start = element.y >> 16;
    unsigned place = start;
    for (unsigned j = start; j < filled; ++j) {
        const uint2 other = chosen[j];
        if (other.y >> 16 != start)
            break;
        place += other.x > element.x || (other.x == element.x && j < i);
    }
    if (place < K) {
        out[place] = valueOf(element.x);
        position[place] = element.y & 0xffff;
    }
}
