// Before: the least maximum of groups of 8. The unluckiest of many small groups pulls the bound far down.
//   unsigned most = max(max(key[0], key[1]), max(key[2], key[3]));
//   unsigned least = max(most, __shfl_xor_sync(0xffffffff, most, 1));
//   if (least == 0) least = 0xffffffff;                  // an empty group
//   if (K > (N + 7) / 8) { /* too few groups: the least key */ }

// After: the least second largest of groups of 16. Half the groups, two elements in each that are no smaller: still K
// in all, but it is rarer that a group of 16 has no two large elements than that one of 8 has none.
// Adapt: elements a thread, and the lanes of a group: 4 elements of each of 4 lanes here.
unsigned most = max(key[0], key[1]), second = min(key[0], key[1]);
{
    const unsigned larger = max(key[2], key[3]), smaller = min(key[2], key[3]);
    second = max(min(most, larger), max(second, smaller));   // `second` first, it needs the old `most`
    most = max(most, larger);
}
#pragma unroll
for (int mask = 1; mask < 4; mask *= 2) {                    // disjoint pairs of lanes: nothing is counted twice
    const unsigned larger = __shfl_xor_sync(0xffffffff, most, mask), smaller = __shfl_xor_sync(0xffffffff, second, mask);
    second = max(min(most, larger), max(second, smaller));
    most = max(most, larger);
}
unsigned least = second == 0 ? 0xffffffff : second;          // a group of fewer than two has no say
if (K > 2 * ((N + 14) / 16)) {                               // groups of two elements or more, two of each
    least = 0xffffffff;
#pragma unroll
    for (int e = 0; e < 4; ++e)
        least = min(least, key[e] - 1);                      // no element (key 0) becomes the largest
    least += least != 0xffffffff;
}
least = __reduce_min_sync(0xffffffff, least);                // of the warp, then of the block
most = __reduce_max_sync(0xffffffff, most);
