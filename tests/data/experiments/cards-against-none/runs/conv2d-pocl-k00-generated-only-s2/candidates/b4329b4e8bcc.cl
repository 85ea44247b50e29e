/*klineage
surface = "opencl"

[[tunable]]
name = "TILES"
default = 14
values = [14, 28]

[[launch]]
kernel = "winograd"
grid = ["1 + sm_count"]
block = ["1"]
args = ["x", "weight", "y", "int N", "int H", "int W", "int C", "int F", "local 64 * round_up(C, 16) * round_up(F, 32)", "local 64 * TILES * round_up(C, 16)", "local 2048 * TILES"]
*/

#pragma OPENCL FP_CONTRACT ON

static inline float16 load_some(__global const float *p, int left)
{
 if (left >= 16)
  return vload16(0, p);
 float t[16];
 for (int i = 0; i < 16; ++i)
  t[i] = i < left ? p[i] : 0.0f;
 return vload16(0, t);
}

static inline void store_some(float16 v, __global float *p, int left)
{
 if (left >= 16) {
  vstore16(v, 0, p);
  return;
 }
 float t[16];
 vstore16(v, 0, t);
 for (int i = 0; i < left; ++i)
  p[i] = t[i];
}

#define GROW(i, a, b, d) \
 { \
  vstore16(a, 0, out + (4 * (i)) * step); \
  vstore16(0.5f * (a + b + d), 0, out + (4 * (i) + 1) * step); \
  vstore16(0.5f * (a - b + d), 0, out + (4 * (i) + 2) * step); \
  vstore16(d, 0, out + (4 * (i) + 3) * step); \
 }
#define GCOL(s) \
 float16 a##s = (float16)(0.0f), b##s = a##s, d##s = a##s; \
 if (left > 0 && c < C) { \
  a##s = load_some(weight + (size_t)((s) * C + c) * F + f, left); \
  b##s = load_some(weight + (size_t)((3 + s) * C + c) * F + f, left); \
  d##s = load_some(weight + (size_t)((6 + s) * C + c) * F + f, left); \
 } \
 float16 u##s = 0.5f * (a##s + b##s + d##s); \
 float16 v##s = 0.5f * (a##s - b##s + d##s);

// U[filter block][point][channel][32]
static inline void weights(__global const float *weight, __local float *U, int c, int C, int F)
{
 int Fp = (F + 31) / 32 * 32;
 int Cp = (C + 15) / 16 * 16;
 size_t step = (size_t)Cp * 32;
 for (int f = 0; f < Fp; f += 16) {
  int left = F - f;
  __local float *out = U + ((size_t)(f / 32) * 16 * Cp + c) * 32 + f % 32;
  GCOL(0) GCOL(1) GCOL(2)
  GROW(0, a0, a1, a2)
  GROW(1, u0, u1, u2)
  GROW(2, v0, v1, v2)
  GROW(3, d0, d1, d2)
 }
}

#define BCOL(j) \
 { \
  int col = x0 + j; \
  if (col >= 0 && col < W) { \
   __global const float *src = mid + (long)col * C; \
   float16 d0 = (float16)(0.0f), d1 = load_some(src, left), d2 = d0, d3 = d0; \
   if (th > 0) \
    d0 = load_some(src - line, left); \
   if (2 * th + 1 < H) \
    d2 = load_some(src + line, left); \
   if (2 * th + 2 < H) \
    d3 = load_some(src + 2 * line, left); \
   e0##j = d0 - d2; \
   e1##j = d1 + d2; \
   e2##j = d2 - d1; \
   e3##j = d1 - d3; \
  } else \
   e0##j = e1##j = e2##j = e3##j = (float16)(0.0f); \
 }
#define BROW(i) \
 vstore16(e##i##0 - e##i##2, 0, out + (4 * i) * step); \
 vstore16(e##i##1 + e##i##2, 0, out + (4 * i + 1) * step); \
 vstore16(e##i##2 - e##i##1, 0, out + (4 * i + 2) * step); \
 vstore16(e##i##1 - e##i##3, 0, out + (4 * i + 3) * step);
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define INIT(i) float16 p##i = (float16)(0.0f), q##i = (float16)(0.0f);
#define ROW(i) \
 { \
  float16 a = (float16)(v[(i) * 16 + c]); \
  p##i = a * b0 + p##i; \
  q##i = a * b1 + q##i; \
 }
#define PUT(i) \
 vstore16(p##i, 0, out + (i) * 32); \
 vstore16(q##i, 0, out + (i) * 32 + 16);

#define PREFETCH(op, p) __asm__ volatile(op " (%0)" : : "r"((ulong)(p)))

#define PREFETCH_TILE(tile) \
 if ((tile) < total) { \
  int tw = (tile) % TW, th = (tile) / TW % TH, n = (tile) / (TW * TH); \
  int col = min(2 * tw + 1, W - 1); \
  int size = col + 1 < W ? 2 * C : C; \
  for (int i = 0; i < 4; ++i) { \
   int row = min(max(2 * th - 1 + i, 0), H - 1); \
   __global const float *src = x + ((size_t)(n * H + row) * W + col) * C; \
   for (int c = 0; c < size; c += 16) \
    PREFETCH("prefetcht1", src + c); \
  } \
 }

#define ACOL(j) \
 { \
  float16 m0 = vload16(0, m + (j) * mstep); \
  float16 m1 = vload16(0, m + (4 + j) * mstep); \
  float16 m2 = vload16(0, m + (8 + j) * mstep); \
  float16 m3 = vload16(0, m + (12 + j) * mstep); \
  g##j = m0 + m1 + m2; \
  h##j = m1 - m2 - m3; \
 }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd(__global const float *x,
 __global const float *weight, __global float *y, int N, int H, int W, int C, int F, __local float *U,
 __local float *V, __local float *M)
{
 // Group 0 is empty: the thread that starts first takes one group more than its share.
 if (get_group_id(0) == 0)
  return;
 int TH = (H + 1) / 2, TW = (W + 1) / 2;
 int total = N * TH * TW;
 int blocks = (C + 15) / 16;
 int step = blocks * TILES * 16;
 const int mstep = TILES * 32;

 int groups = (int)get_num_groups(0) - 1, group = (int)get_group_id(0) - 1;
 long all = (total + TILES - 1) / TILES;
 int begin = (int)(all * group / groups), end = (int)(all * (group + 1) / groups);
 if (begin >= end)
  return;
 size_t line = (size_t)W * C;
 for (int t = begin * TILES; t < begin * TILES + TILES; ++t) {
  PREFETCH_TILE(t)
 }
 for (int c = 0; c < blocks * 16; ++c)
  weights(weight, U, c, C, F);

 for (int first = begin * TILES; first < end * TILES; first += TILES) {
 // V[point][channel block][tile][16]
 int count = min(TILES, total - first);
 for (int cb = 0; cb < blocks; ++cb) {
  int left = C - cb * 16;
  int tw = first % TW, th = first / TW % TH, n = first / (TW * TH);
  float16 e00, e01, e02, e03, e10, e11, e12, e13, e20, e21, e22, e23, e30, e31, e32, e33;
  e02 = (float16)(0.0f);
  e03 = e12 = e13 = e22 = e23 = e32 = e33 = e02;
  __local float *out = V + cb * TILES * 16;
  for (int t = 0; t < count; ++t) {
   int x0 = 2 * tw - 1;
   __global const float *mid = x + (size_t)(n * H + 2 * th) * line + cb * 16;
   if (t == 0 || tw == 0) {
    BCOL(0) BCOL(1)
   } else {
    e00 = e02, e10 = e12, e20 = e22, e30 = e32;
    e01 = e03, e11 = e13, e21 = e23, e31 = e33;
   }
   BCOL(2) BCOL(3)
   BROW(0) BROW(1) BROW(2) BROW(3)
   out += 16;
   if (++tw == TW) {
    tw = 0;
    if (++th == TH) {
     th = 0;
     ++n;
    }
   }
  }
  for (int t = count; t < TILES; ++t) {
   for (int k = 0; k < 16; ++k)
    vstore16((float16)(0.0f), 0, out + k * step);
   out += 16;
  }
 }

 for (int f = 0; f < F; f += 32) {
  // M[point][tile][32]
  for (int k = 0; k < 16; ++k) {
   for (int t = k; t < TILES; t += 16) {
    int tile = first + t;
    if (tile < total) {
     int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
     __global float *out = y + ((size_t)(n * H + 2 * th) * W + 2 * tw) * F + f;
     for (int i = 0; i < 2 && 2 * th + i < H; ++i) {
      PREFETCH("prefetchw", out);
      PREFETCH("prefetchw", out + 16);
      if (2 * tw + 1 < W) {
       PREFETCH("prefetchw", out + F);
       PREFETCH("prefetchw", out + F + 16);
      }
      out += (size_t)W * F;
     }
    }
    tile += TILES;
    if (f == 0) {
     PREFETCH_TILE(tile)
    }
   }
   for (int t = 0; t < TILES; t += 14) {
    __local const float *b = U + ((size_t)(f / 32) * 16 + k) * blocks * 512;
    __local const float *v = V + k * step + t * 16;
    __local float *out = M + k * mstep + t * 32;
    EACH(INIT)
    for (int cb = 0; cb < blocks; ++cb) {
     for (int c = 0; c < 16; ++c) {
      float16 b0 = vload16(0, b);
      float16 b1 = vload16(1, b);
      EACH(ROW)
      b += 32;
     }
     v += TILES * 16;
    }
    EACH(PUT)
   }
  }
  for (int t = 0; t < TILES && first + t < total; ++t) {
   int tile = first + t;
   int tw = tile % TW, th = tile / TW % TH, n = tile / (TW * TH);
   int row = 2 * th, col = 2 * tw;
   for (int part = 0; part < 32 && f + part < F; part += 16) {
    int left = F - f - part;
    __local const float *m = M + t * 32 + part;
    float16 g0, g1, g2, g3, h0, h1, h2, h3;
    ACOL(0) ACOL(1) ACOL(2) ACOL(3)
    __global float *out = y + ((size_t)(n * H + row) * W + col) * F + f + part;
    store_some(g0 + g1 + g2, out, left);
    if (col + 1 < W)
     store_some(g1 - g2 - g3, out + F, left);
    if (row + 1 < H) {
     out += (size_t)W * F;
     store_some(h0 + h1 + h2, out, left);
     if (col + 1 < W)
      store_some(h1 - h2 - h3, out + F, left);
    }
   }
  }
 }
 }
}
