// exp for x <= 0, without branches. Adapt: vector width, degree to the tolerance, the clamp to what may count as 0.
//
//   x·log2(e) = n + f,  n whole,  |f| <= 0.5   →   e^x = 2^n · 2^f
//
+ float16 expOf(float16 x)
+ {
+     const float log2e = 1.44269504f;
+     const float shift = 12582912.0f;          // 1.5 · 2^23: the sum keeps n in its low bits, rounded to nearest
+     x = max(x, -88.0f);                       // below, and for −∞: n = −127, an exponent of 0, a result of exactly 0
+     float16 shifted = x * log2e + shift;
+     float16 f = x * log2e - (shifted - shift);
+     float16 p = 0.00132647273f;               // minimax for 2^f on [−0.5, 0.5], through 1 at 0
+     p = p * f + 0.00967151299f;
+     p = p * f + 0.0555073358f;
+     p = p * f + 0.240222424f;
+     p = p * f + 0.693147004f;
+     p = p * f + 1.0f;
+     int16 exponent = (as_int16(shifted) + 127) << 23;   // what lies above the low bits is shifted out
+     return p * as_float16(exponent);
+ }

-   tail = exp(tail - top);
+   tail = expOf(tail - top);                   // subtract first: the argument is small where the result matters
    for (int c = 0; c < full; c += 16) {
-       float16 e = exp(vload16(0, x + c) - top);
+       float16 e = expOf(vload16(0, x + c) - top);
        vstore16(e, 0, y + c);
        sums += e;
    }

// There is no upper clamp: an argument above 88 runs past the exponent into the sign. Keep the maximum subtracted.
