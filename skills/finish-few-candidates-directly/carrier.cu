// Before: all rounds of the search run, each with a clearing, a counting and a summing part between barriers,
// although after one or two of them only a handful of candidates is left.
//   for (int shift = 24; shift >= 0; shift -= 8) { ...count, scan...;
//       threshold |= digit << shift;  need -= before; }
//   // then: key > threshold is taken, and of key == threshold as many as are missing

// After: leave the loop as soon as the rest is small or decided, and decide the rest by comparing all with all.
constexpr int FEW = 64;             // candidates that are ranked directly; FEW <= THREADS
__shared__ uint2 few[FEW];          // key and position
int shift = 24;
Cut cut;
bool settled;
while (true) {
    // one round, as before: bins cleared, counted and summed; `found` = {bin, before, count}
    __syncthreads();
    cut = found;                    // the same in all threads, so that all leave the loop together
    threshold |= (255 - cut.bin) << shift;
    need -= cut.before;
    settled = shift == 0 || cut.count == need;  // the rest is equal, or all of it is needed
    if (settled || cut.count <= FEW)
        break;
    shift -= 8;
}

// Compare only the digits that are known.
#pragma unroll
for (int e = 0; e < EACH; ++e) {
    unsigned place = K;
    if (key[e] >> shift > threshold >> shift)
        place = atomicAdd(&above, 1);
    else if (key[e] >> shift == threshold >> shift) {
        const unsigned number = atomicAdd(&inside, 1);
        if (settled)
            place = K - need + number;          // beyond K when enough are there
        else
            few[number] = make_uint2(key[e], EACH * tid + e);
    }
    if (place < K) {
        out[place] = value[e];
        position[place] = EACH * tid + e;
    }
}
__syncthreads();

// One thread a candidate; the last warps.
const unsigned mine = THREADS - 1 - tid;
if (!settled && mine < cut.count) {
    const uint2 element = few[mine];
    unsigned rank = 0;
    for (unsigned i = 0; i < cut.count; ++i) {
        const unsigned other = few[i].x;
        rank += other > element.x || (other == element.x && i < mine);
    }
    if (rank < need) {
        out[K - need + rank] = valueOf(element.x);
        position[K - need + rank] = element.y;
    }
}
