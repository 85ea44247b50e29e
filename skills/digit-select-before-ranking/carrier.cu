// Before: one thread an element, N comparisons each, N * N in all, though only K are kept.
//   int rank = 0;
//   for (int i = 0; i < N; ++i)
//       rank += all[i] > mine || (all[i] == mine && i < column);
//   if (rank < K) { out[rank] = mine; position[rank] = column; }

// After: one block a row. Find the digits of the K-th largest key, collect, and rank only what was collected.
// Adapt: EACH keys a thread (THREADS * EACH >= N), the map of the type to unsigned keys, and the order of the ties.
unsigned key[EACH];                 // read once, kept in registers; 0 stands for no element
__shared__ unsigned bins[256];      // counts by digit, the largest digit first
__shared__ unsigned above, inside;  // set to 0 by one thread before the first barrier
__shared__ Cut found;               // {bin, before, count}

unsigned threshold = 0, need = K;
int shift = 24;
Cut cut;
bool settled;
while (true) {
    if (tid < 256)
        bins[tid] = 0;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e)  // only keys that agree with the digits found so far
        if (shift == 24 || (key[e] ^ threshold) >> (shift + 8) == 0)
            atomicAdd(&bins[255 - (key[e] >> shift & 255)], 1);
    __syncthreads();
    if (tid < 32)
        findCut(bins, need, lane, &found);  // the building block: a scan of 256 bins by one warp
    __syncthreads();
    cut = found;
    threshold |= (255 - cut.bin) << shift;
    need -= cut.before;
    settled = shift == 0;           // all digits are known: those in the bin are equal
    if (settled || cut.count <= FEW)
        break;                      // few are left: the ranking decides among them
    shift -= 8;
}

// Collect all above the bin, and those in it: as many as needed when they are equal, otherwise all.
const unsigned sure = K - need, wanted = settled ? need : cut.count;
#pragma unroll
for (int e = 0; e < EACH; ++e) {
    unsigned place = 0xffffffff;
    if (key[e] >> shift > threshold >> shift)
        place = atomicAdd(&above, 1);
    else if (key[e] >> shift == threshold >> shift) {
        const unsigned number = atomicAdd(&inside, 1);
        if (number < wanted)
            place = sure + number;
    }
    if (place != 0xffffffff) {
        keys[place] = key[e];       // shared, room for K + FEW + 4
        columns[place] = EACH * tid + e;
    }
}
const unsigned filled = sure + wanted;
if (tid < 4)
    keys[filled + tid] = 0;         // fills up the last load of 16 bytes
__syncthreads();

// Rank only these, with four keys a load.
for (unsigned i = tid; i < filled; i += THREADS) {
    const unsigned element = keys[i];
    unsigned rank = 0;
#pragma unroll 4
    for (unsigned j = 0; j < filled; j += 4) {
        const uint4 other = *reinterpret_cast<const uint4 *>(keys + j);
        rank += other.x > element || (other.x == element && j < i);
        rank += other.y > element || (other.y == element && j + 1 < i);
        rank += other.z > element || (other.z == element && j + 2 < i);
        rank += other.w > element || (other.w == element && j + 3 < i);
    }
    if (rank < K) {
        out[rank] = valueOf(element);
        position[rank] = columns[i];
    }
}
