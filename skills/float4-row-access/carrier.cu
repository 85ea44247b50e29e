// Two kernels, picked at launch by the length of the row; grid, block and args are the same for both:
//   kernel = "k"      when = "C % 4 == 0"
//   kernel = "k_any"  when = "C % 4 != 0"     // the scalar kernel as it was, under another name
// ADAPT: the conditions must exclude each other and cover every shape.

-    x += size_t(row) * C;
-    y += size_t(row) * C;
+    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C);
+    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C);

 // a reducing pass: neighbouring lanes take neighbouring float4s; combine the four, then into the accumulator
-    for (int c = lane; c < C; c += 32)
-        acc = combine(acc, f(x[c]));
+    for (int c = lane; c < C / 4; c += 32) {
+        const float4 v = from[c];
+        acc = combine(acc, combine(combine(f(v.x), f(v.y)), combine(f(v.z), f(v.w))));
+    }

 // an elementwise pass
-    for (int c = lane; c < C; c += 32)
-        y[c] = g(x[c]);
+    for (int c = lane; c < C / 4; c += 32) {
+        const float4 v = from[c];
+        to[c] = make_float4(g(v.x), g(v.y), g(v.z), g(v.w));
+    }
// ADAPT: 32 is the number of threads a row (blockDim.x with a block a row).
// ADAPT: operands indexed by column (weight, bias) are read as float4 by the same c; an element's own index is 4 * c + 0..3.
// ADAPT: 16 bytes hold 8 halves or bfloat16: divide C by 8 and unpack from a uint4.
