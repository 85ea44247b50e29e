// Before: each thread stores its elements to computed places in global memory, a sector and a branch for each.
#pragma unroll
for (int e = 0; e < EACH; ++e)
    if (place[e] < sure) {
        out[first + place[e]] = value[e];
        position[first + place[e]] = EACH * tid + e;
    }

// After: scatter into shared memory, one store of 8 bytes for both parts, and copy out in order.
// Adapt: what belongs to an element, and the room: all that are kept and what else is listed (here 64 candidates):
// 8 * (K + 64) bytes of dynamic shared memory.
extern __shared__ uint2 chosen[];                   // key and position
#pragma unroll
for (int e = 0; e < EACH; ++e)
    if (place[e] < limit)                           // candidates that are still to be ranked land behind the sure ones
        chosen[first + place[e]] = make_uint2(key[e], EACH * tid + e);
__syncthreads();                                    // the places of other threads are read now

#pragma unroll 1
for (unsigned i = tid; i < sure; i += THREADS) {    // neighbouring threads, neighbouring addresses
    out[i] = valueOf(chosen[i].x);                  // what is computed from the element is computed once, here
    position[i] = chosen[i].y;
}
