// The index-th tile of `groups` groups with `tiles` tiles each: sections of SECTION groups, in a section the last tile of
// each group (the longest) first. `after`: how many tiles of its group come after it.
template <int SECTION>
__device__ __forceinline__ void placeOf(int index, int tiles, int groups, int &group, int &after)
{
    const int section = index / (SECTION * tiles), left = index - section * SECTION * tiles;
    const int here = min(SECTION, groups - section * SECTION);
    after = left / here;
    group = section * SECTION + left - after * here;
}
