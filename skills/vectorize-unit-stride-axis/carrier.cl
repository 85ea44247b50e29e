// A scalar along the contiguous axis → a vector of V neighbours. V: a width the hardware has; see widen-to-native-vector.
// Adapt: which operand runs along the axis (vector) and which does not (scalar, broadcast); how the edge is handled.

// 1. The vector axis is an output axis (columns of c)
-   int col = get_global_id(0);
+   int col = get_global_id(0) * 4;
+   col = min(col, N - 4);               // the last vector slides back; needs N >= 4: guard the launch, `when = "N >= 4"`,
+                                        // and add a scalar launch for the rest
-   float sum[MR];
+   float4 sum[MR];
    for (int k = 0; k < K; ++k) {
-       float bk = b[k * N + col];
+       float4 bk = vload4(0, b + k * N + col);              // unit stride; no alignment beyond a float's
        for (int i = 0; i < MR; ++i)
            sum[i] += a[(row + i) * K + k] * bk;             // a does not run along the columns: broadcast
    }
-   c[(row + i) * N + col] = sum[i];
+   vstore4(sum[i], 0, c + (row + i) * N + col);

// 2. The vector axis is reduced (columns of a row of softmax): one partial result a lane, combined at the end
+   int full = C / 16 * 16;
+   float16 tail = loadTail(x + full, C - full);             // lane i: i < n ? p[i] : -INFINITY, element by element
+   float16 tops = tail;
-   for (int c = 0; c < C; ++c)
-       top = fmax(top, x[c]);
+   for (int c = 0; c < full; c += 16)
+       tops = max(tops, vload16(0, x + c));
+   float top = maxOf(tops);                                 // 16 → 8 → 4 → 2 → 1 by .lo and .hi

+   tail = exp(tail - top);                                  // padding becomes 0, neutral for the sum
+   float16 sums = tail;
    for (int c = 0; c < full; c += 16) {
+       float16 e = exp(vload16(0, x + c) - top);
+       vstore16(e, 0, y + c);
+       sums += e;                                           // 16 short chains: fp32 suffices where one long one needed double
    }
+   storeTail(tail / sum, y + full, C - full);               // the tail's valid elements alone
