// Launch: this kernel only for rows that fit; a kernel with passes over the row takes the others.
//   when = "C % 4 == 0 && C <= 1024"      and      when = "C % 4 != 0 || C > 1024"
 constexpr int VECTORS = 8;                       // float4 a lane: 32 * 8 * 4 = 1024 columns at most
// ADAPT: VECTORS = ceil(longest row / (threads a row * 4)); a compile-time constant, about 4 * VECTORS registers.

    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C) + lane;
    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C) + lane;
    const int mine = C / 4 - lane;                // float4 of the row from this lane on

    float4 v[VECTORS];
#pragma unroll                                    // full unrolling: every index of v is a constant
    for (int i = 0; i < VECTORS; ++i)             // the loads do not depend on each other: all in flight together
        v[i] = 32 * i < mine ? from[32 * i] : make_float4(PAD, PAD, PAD, PAD);
// ADAPT: PAD must change no reduction: -inf for a maximum and for sums of exp(v - max), 0 for sums of v or v * v.
// Where no value does (a sum of (v - mean)^2), test 32 * i < mine in that reduction too.

    // each reducing pass: over v[], in place of from[]; a value that a later pass needs again replaces v[i]
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        v[i].x = f(v[i].x); /* .y .z .w likewise */
        acc = combine(acc, combine(combine(v[i].x, v[i].y), combine(v[i].z, v[i].w)));
    }
    acc = warpReduce(acc);                        // by all lanes, outside of any test of mine

#pragma unroll
    for (int i = 0; i < VECTORS; ++i)
        if (32 * i < mine)                        // the only stores: not past the end of the row
            to[32 * i] = make_float4(g(v[i].x), g(v[i].y), g(v[i].z), g(v[i].w));
