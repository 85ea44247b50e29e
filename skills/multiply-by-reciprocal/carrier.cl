// Adapt: the divisor's name; check that it is finite and bounded away from 0.
// Here it is a sum of exponentials with the maximum subtracted: at least exp(0) = 1, at most C.

    for (int c = 0; c < full; c += 16) {
        float16 e = exp(vload16(0, x + c) - top);
        vstore16(e, 0, y + c);
        sums += e;
    }
-   float sum = sumOf(sums);
+   float scale = 1.0f / sumOf(sums);                        // one division a row

    for (int c = 0; c < full; c += 16)
-       vstore16(vload16(0, y + c) / sum, 0, y + c);
+       vstore16(vload16(0, y + c) * scale, 0, y + c);
-   storeTail(tail / sum, y + full, rest);
+   storeTail(tail * scale, y + full, rest);                 // the tail too, or the row is scaled in two ways
