/*klineage
[[tunable]]
name = "T"             # was: #define T 12; outputs a work-item keeps in registers
default = 12           # the value that the kernel had, so that the default compiles to the same code
values = [4, 6, 8, 12, 16]   # ADAPT: below and above the default; few that spill or starve the cores

[[tunable]]
name = "WGX"           # tiles of a work-group along axis 0; likewise WGY along axis 1
default = 4
values = [1, 2, 4, 8]  # ADAPT: WGX * WGY must not pass the device's work-group limit

[[launch]]
when  = "M >= T && N >= 16"      # every condition that held the literal now names the tunable,
                                 # and that of the fallback kernel is its exact complement: "M < T || N < 16"
grid  = ["ceil_div(N, WGX * 16)", "ceil_div(M, WGY * T)"]   # 16: width of the vector, stays fixed
block = ["WGX", "WGY"]
*/
// Delete "#define T 12": the build defines T, and a definition in the source would override or clash with it.
// The body must use T wherever it used the literal, and no value derived from it by hand:
int row = get_global_id(1) * T;
if (row >= M || col >= N) return;   // whole work-groups overhang the edge for any WGX, WGY
row = min(row, M - T);              // needs M >= T: hence the launch condition
float16 sum[T];                     // T is a compile-time constant: loops over it unroll whole
