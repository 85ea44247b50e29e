// from: const float4 * (or const float *) into global memory that is read-only in this kernel
-        v[i] = 32 * i < mine ? from[32 * i] : pad;
+        v[i] = 32 * i < mine ? __ldcs(from + 32 * i) : pad;   // ld.global.cs: cached, but first to be evicted
// ADAPT: only the operand of which no element is read again, by this thread or another. Operands shared by rows
// (weight, bias, a table) keep plain loads.
// ADAPT: __ldcs takes a pointer, not a value; it exists for the built-in scalar and vector types (float, float4, uint4, ...).
// ADAPT: the test of the bound stays around the load.
