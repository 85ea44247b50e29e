// before: one pass stores the values, the next does nothing but read them back and reduce them
//   for (int i = 0; i < full; i += 16)
//       vstore16(f(vload16(0, in + i)), 0, out + i);
//   float16 acc = tail;
//   for (int i = 0; i < full; i += 16)
//       acc += vload16(0, out + i);

// after: reduce each value while it is in a register
float16 acc = tail;                 // ADAPT: initial value of before, final BEFORE the fused loop:
                                    // here tail = f(tail), padded lanes neutral (0 for a sum)
for (int i = 0; i < full; i += 16) {
    float16 v = f(vload16(0, in + i));
    vstore16(v, 0, out + i);        // keep the store only if a later pass still reads the value
    acc += v;                       // same lanes, same order as before; ADAPT: max, v * v, ...
}
// f must not use acc or anything computed from it
