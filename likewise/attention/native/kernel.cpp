// Linear attention on CPUs, forward and backward: O_i = phi(q_i) S_i / (phi(q_i) Z_i), S = sum phi(k_j)' v_j, Z = sum phi(k_j).
//
// Maps: elu(x) + 1, relu(x), and exponentials exp(W x' + offset + x'.(slope - curve x')) of x' = x - mean.
// The source is compiled once for every instruction set (LANES floats in a vector) and once without LANES, which chooses
// between them at run time. It uses no library but the C one, and OpenMP where there is one.
//
// Causal rows come in chunks of 64. Features are kept relative to a reference r_f that all rows of a chunk may see: the
// largest logarithm of all earlier keys and of the chunk's first key. Keys are exp(log - r_f), queries
// exp(log + r_f - their row's largest), so nothing over- or underflows. A key that lies more than e^40 above the reference
// ends the chunk before it and begins the next one: no row depends on a later key, not by a bit.
//
// With exact_within = w, causal, row p sees keys p - w and before through features: what a chunk of keys is to the rows at
// their positions above, it is to the rows w positions later. The keys between are added pair by pair, with the largest
// logarithm so far subtracted from every row.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#ifdef _OPENMP
#include <omp.h>
#endif

struct Matrix {  // (B, heads, rows, width); strides in elements, the last axis is contiguous
  char* data;
  int64_t batch, head, row;
};
struct Side {  // a map of exponentials, for queries or for keys: one set of numbers for all heads, or one for each
  const float *frequencies, *offsets, *mean, *slope, *curve;  // (sets, F, K), (sets, F), (sets, K) three times
};
struct Call {  // every field has 8 bytes: see kernel.py
  Matrix q, k, v, out, grad, dq, dk, dv;
  const uint8_t *seen, *begins;  // (B, S) or null: keys that may be seen, positions that begin a packed sequence
  const float *sums, *scale;     // (B, G, F, V + 1) and (B, G, F), or null: the state before
  float *sums_after, *scale_after;
  Side queries, keys;
  int64_t B, H, G, T, S, K, F, V;
  int64_t sets, slices, map, causal, bf16, wide, threads;  // wide: dk and dv are float32, one for each slice of a group's heads
  int64_t within, strict;        // exact_within, or 0; strict: the window leaves out a row's own position
  float* log_sums;               // (B, H, T), of base 2: with a window, written by attend and read by differentiate
  double kernel_scale;           // pairs within the window have the weight exp(kernel_scale q.k)
};
enum Map { ELU, RELU, EXPONENTIALS };

#ifndef LANES  // ------------------------------------------------------------------ the choice between instruction sets
#include <pthread.h>
#define DECLARE(name)                                              \
  namespace name {                                                 \
  int attend(const Call&), differentiate(const Call&), step(const Call&); \
  }
DECLARE(lanes4)
#ifdef WIDE  // built for x86-64
DECLARE(lanes8)
DECLARE(lanes16)
#endif

// After a fork the OpenMP threads of the parent are gone, and a parallel region would wait for them for ever.
static bool forked = false;
static int watching = pthread_atfork(nullptr, nullptr, [] { forked = true; });

static int best() {
#ifdef WIDE
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return 16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 8;
#endif
  return 4;
}
static int lanes = best();

#ifdef WIDE
#define CHOOSE(function, call) (lanes == 16 ? lanes16::function(call) : lanes == 8 ? lanes8::function(call) : lanes4::function(call))
#else
#define CHOOSE(function, call) lanes4::function(call)
#endif

extern "C" {
// The widest instruction set that this machine has and that is at most `most` lanes wide is used from now on.
int likewise_lanes(int most) {
  int widest = best();
  lanes = most >= widest ? widest : most >= 8 && widest >= 8 ? 8 : 4;
  return lanes;
}
int likewise_call_size() { return (int)sizeof(Call); }
const char* likewise_source() { return SOURCE; }
// Each returns 0, or 1 where there was not enough memory.
// Whether elu's features of a call with a state leave the range in which their products are right in float32; without a
// state the caller sees that by the outputs.
static bool extreme(const Call& c) {
  if (c.map != ELU || !c.sums_after) return false;
  const uint32_t most = 0x461C4000;  // 10000.0f without its sign; infinities and NaN are above it
  auto beyond = [&](const Matrix& m, int64_t heads, int64_t rows, const uint8_t* seen) {
    for (int64_t b = 0; b < c.B; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < rows; ++t) {
          const char* x = m.data + (b * m.batch + h * m.head + t * m.row) * (c.bf16 ? 2 : 4);
          if (seen && !seen[b * rows + t]) continue;
          uint32_t largest = 0;
          for (int64_t i = 0; i < c.K; ++i) {
            uint32_t y = c.bf16 ? (uint32_t)((const uint16_t*)x)[i] << 16 : ((const uint32_t*)x)[i];
            y &= 0x7fffffffu;
            largest = y > largest ? y : largest;
          }
          if (largest > most) return true;
        }
    return false;
  };
  return beyond(c.q, c.H, c.T, nullptr) || beyond(c.k, c.G, c.S, c.seen);
}

int likewise_attend(const Call* call) { Call c = *call; if (forked) c.threads = 1; return extreme(c) ? 2 : CHOOSE(attend, c); }
int likewise_differentiate(const Call* call) { Call c = *call; if (forked) c.threads = 1; return CHOOSE(differentiate, c); }
int likewise_step(const Call* call) { Call c = *call; if (forked) c.threads = 1; return extreme(c) ? 2 : CHOOSE(step, c); }
}

#else  // ---------------------------------------------------------------------------------- once per instruction set
#if LANES > 4
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <type_traits>
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE inline __attribute__((always_inline))

namespace JOIN(lanes, LANES) {
int attend(const Call&), differentiate(const Call&), step(const Call&);

namespace {
constexpr int W = LANES;               // floats in a vector
constexpr int C = 64;                  // rows of a chunk
constexpr int TILE = W == 16 ? 8 : 6;  // rows of a tile of a product: with two vectors a row, all registers
constexpr float LOG2E = 1.44269504088896341f, LN2 = 0.693147180559945309f;
constexpr float NONE = -3.0e38f;       // the logarithm of a feature of which no key was seen
constexpr float JUMP = 40.0f;          // how far a logarithm may exceed its reference

typedef float vf __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef float unaligned __attribute__((vector_size(4 * W), aligned(4), may_alias));

INLINE vf load(const float* p) { return *(const unaligned*)p; }
INLINE void store(float* p, vf x) { *(unaligned*)p = x; }
INLINE vf all(float x) { return x - vf{}; }

// What compiler vectors cannot say: maxima in one instruction, sums and maxima of lanes, transposition. Where one of two
// numbers is NaN, max_ and min_ give the second: what may be NaN comes second, so that it is not lost.
#if LANES == 16
INLINE vf max_(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vf min_(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE float sum(vf x) { return _mm512_reduce_add_ps((__m512)x); }
INLINE float largest(vf x) { return _mm512_reduce_max_ps((__m512)x); }
#elif LANES == 8
INLINE vf max_(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE vf min_(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE float sum(vf x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INLINE float largest(vf x) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
#else
INLINE vf max_(vf a, vf b) { return a > b ? a : b; }
INLINE vf min_(vf a, vf b) { return a < b ? a : b; }
INLINE float sum(vf x) { return (x[0] + x[2]) + (x[1] + x[3]); }
INLINE float largest(vf x) { return fmaxf(fmaxf(x[0], x[2]), fmaxf(x[1], x[3])); }
#endif

#if LANES > 4
// out[j][i] = x[i][j] for 8 x 8 numbers
INLINE void transpose_block(const float* x, long ldx, float* out, long ldout) {
  __m256 r[8], s[8];
  for (int a = 0; a < 8; ++a) r[a] = _mm256_loadu_ps(x + a * ldx);
  for (int a = 0; a < 8; a += 2) s[a] = _mm256_unpacklo_ps(r[a], r[a + 1]), s[a + 1] = _mm256_unpackhi_ps(r[a], r[a + 1]);
  for (int a = 0; a < 8; a += 4)
    for (int b = 0; b < 2; ++b) {
      r[a + 2 * b] = _mm256_shuffle_ps(s[a + b], s[a + b + 2], 0x44);
      r[a + 2 * b + 1] = _mm256_shuffle_ps(s[a + b], s[a + b + 2], 0xEE);
    }
  for (int a = 0; a < 4; ++a) {
    _mm256_storeu_ps(out + a * ldout, _mm256_permute2f128_ps(r[a], r[a + 4], 0x20));
    _mm256_storeu_ps(out + (a + 4) * ldout, _mm256_permute2f128_ps(r[a], r[a + 4], 0x31));
  }
}
constexpr int BLOCK = 8;
#else
INLINE void transpose_block(const float* x, long ldx, float* out, long ldout) {
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) out[b * ldout + a] = x[a * ldx + b];
}
constexpr int BLOCK = 4;
#endif
void transpose(const float* x, long ldx, int rows, int columns, float* out, long ldout) {
  for (int i = 0; i < rows; i += BLOCK)
    for (int j = 0; j < columns; j += BLOCK) transpose_block(x + i * ldx + j, ldx, out + j * ldout + i, ldout);
}

// 2^x for x <= 127, with a relative error of about 1e-7; exactly 1 at 0, and exactly 0 up to -125: a feature of 1e37 may
// stand beside it. What is subtracted costs nothing where products and sums are one instruction.
INLINE vf exp2_(vf x) {
  x = max_(all(-125.0f), x);
  vf shifted = x + 12582912.0f, f = x - (shifted - 12582912.0f);  // 1.5 * 2^23: the nearest integer in the low bits
  vf p = all(1.535336188319500e-4f);
  p = p * f + 1.339887440266574e-3f;
  p = p * f + 9.618437357674640e-3f;
  p = p * f + 5.550332471162809e-2f;
  p = p * f + 2.402264791363012e-1f;
  p = p * f + 6.931472028550421e-1f;
  p = p * f + 1.0f;
  return p * (vf)(((vu)shifted << 23) + (127u << 23)) - 0x1p-125f;
}

INLINE int padded(int64_t n) { return (int)((n + W - 1) / W * W); }

// ---- products ----
template <int R, int N>
struct Tile {  // R rows of N vectors, in registers
  vf x[R][N];
  INLINE void clear() { for (auto& row : x) for (auto& v : row) v = vf{}; }
  INLINE void load_from(const float* p, long ld) { for (int r = 0; r < R; ++r) for (int c = 0; c < N; ++c) x[r][c] = load(p + r * ld + c * W); }
  INLINE void store_to(float* p, long ld) { for (int r = 0; r < R; ++r) for (int c = 0; c < N; ++c) store(p + r * ld + c * W, x[r][c]); }
  // += A B for k in from..to, A[r][k] at A[r * row + k * column]
  INLINE void add(const float* A, long row, long column, const float* B, long ldb, int from, int to) {
    for (int k = from; k < to; ++k) {
      vf b[N];
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) b[c] = load(B + k * ldb + c * W);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        float a = A[r * row + k * column];
#pragma GCC unroll 2
        for (int c = 0; c < N; ++c) x[r][c] += a * b[c];
      }
    }
  }
};
template <int N> using Int = std::integral_constant<int, N>;
// f(tile, i, j) over the tiles of `rows` x `columns` numbers: rows even, or a multiple of 8 where tiles have 8 rows
template <int N = 2, class F>
INLINE void tiles(int rows, int columns, F f) {
  auto down = [&](auto n, int j) {
    int i = 0;
    for (; i + TILE <= rows; i += TILE) f(Tile<TILE, decltype(n)::value>(), i, j);
    if constexpr (TILE != 8) {
      for (; i + 4 <= rows; i += 4) f(Tile<4, decltype(n)::value>(), i, j);
      for (; i < rows; i += 2) f(Tile<2, decltype(n)::value>(), i, j);
    }
  };
  int j = 0;
  for (; j + N * W <= columns; j += N * W) down(Int<N>(), j);
  for (; j < columns; j += W) down(Int<1>(), j);
}
template <int R, int N> constexpr int height(const Tile<R, N>&) { return R; }
template <int R, int N> constexpr int width(const Tile<R, N>&) { return N * W; }

struct Rows { const float* x; long ld; };
struct Room { float* x; long ld; };

// out += A B, A[i][k] at A[i * row + k * column]
INLINE void add_product(Room out, int rows, int columns, const float* A, long row, long column, Rows B, int depth) {
  tiles(rows, columns, [&](auto t, int i, int j) {
    t.load_from(out.x + i * out.ld + j, out.ld);
    t.add(A + i * row, row, column, B.x + j, B.ld, 0, depth);
    t.store_to(out.x + i * out.ld + j, out.ld);
  });
}
// The pairs a_i.b_j + start_i for j <= i < rows, 0 above; bT has the b_j as columns.
INLINE void pairs(float* P, int rows, Rows a, const float* bT, int depth, const float* start) {
  tiles<W == 16 ? 1 : 2>(rows, rows < W ? W : rows, [&](auto t, int i, int j) {
    if (j >= i + height(t)) return;
    for (int r = 0; r < height(t); ++r) for (auto& v : t.x[r]) v = all(start ? start[i + r] : 0.0f);
    t.add(a.x + i * a.ld, a.ld, 1, bT + j, C, 0, depth);
    t.store_to(P + i * C + j, C);
    if (j + width(t) > i)
      for (int r = 0; r < height(t); ++r) for (int c = 0; c < width(t); ++c) if (j + c > i + r) P[(i + r) * C + j + c] = 0;
  });
}

// ---- numbers in and out ----
INLINE float widened(uint16_t x) { uint32_t u = (uint32_t)x << 16; float f; memcpy(&f, &u, 4); return f; }
INLINE uint16_t narrowed(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return x != x ? 0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);  // to nearest, ties to even
}
struct Strip {  // the rows of one head
  char* at;
  long row;
  bool bf16;
  INLINE Strip(const Matrix& m, int64_t b, int64_t h, bool bf16) : at(m.data ? m.data + (b * m.batch + h * m.head) * (bf16 ? 2 : 4) : nullptr), row(m.row), bf16(bf16) {}
  // Rows t..t+n as float32: where they are if they can be read there, else in `room` with 0 for rows that are not live, and
  // for what is missing to `rows` rows and to whole vectors.
  Rows read(int64_t t, int n, int rows, int64_t width, const uint8_t* live, float* room) const {
    int wide = padded(width);
    const float* x = (const float*)at + t * row;
    if (!bf16 && n == rows && wide == width && !live) return {x, row};
    for (int i = 0; i < rows; ++i) {
      float* to = room + i * wide;
      int have = i < n && (!live || live[i]) ? (int)width : 0;
      if (!bf16) memcpy(to, x + i * row, sizeof(float) * have);
      else for (int j = 0; j < have; ++j) to[j] = widened(((const uint16_t*)at)[(t + i) * row + j]);
      for (int j = have; j < wide; ++j) to[j] = 0;
    }
    return {room, wide};
  }
  // Where to write `rows` rows, of which n count: in place if they all do, else in `room`; then `write` brings them there.
  Room place(int64_t t, int n, int rows, int64_t width, float* room) const {
    if (!bf16 && n == rows && padded(width) == width) return {(float*)at + t * row, row};
    return {room, padded(width)};
  }
  void write(int64_t t, int n, int64_t width, Room from) const {
    if (!bf16 && from.x == (float*)at + t * row) return;
    for (int i = 0; i < n; ++i) {
      const float* x = from.x + i * from.ld;
      if (!bf16) memcpy((float*)at + (t + i) * row, x, sizeof(float) * width);
      else for (int64_t j = 0; j < width; ++j) ((uint16_t*)at)[(t + i) * row + j] = narrowed(x[j]);
    }
  }
};

// ---- the map ----
struct Packed {  // a Side for products: logarithms of base 2, padded to whole vectors
  float *panels;                 // W' in panels of two vectors: rows far apart would share few sets of the cache
  float *turned;                 // W, (F, K), natural, for gradients
  float *offsets, *mean, *slope, *curve;  // slope and curve natural
};
struct Shape {
  const Call& c;
  int K, F, V, Kp, Fp, Vp, map;
  float unit;  // from logarithms as they are kept to those of base 2
  Packed *queries, *keys;
  Shape(const Call& c) : c(c), K((int)c.K), F((int)c.F), V((int)c.V), Kp(padded(c.K)), Fp(padded(c.F)), Vp(padded(c.V)), map((int)c.map), unit(c.map == ELU ? LOG2E : 1), queries(nullptr), keys(nullptr) {}
  float jump() const { return map == ELU ? JUMP : JUMP * LOG2E; }
};
size_t side_floats(const Shape& s) { return (size_t)2 * s.Fp * s.Kp + s.Fp + 3 * s.Kp; }
void pack(const Shape& s, const Side& side, int64_t set, float* room, Packed& p) {
  memset(room, 0, sizeof(float) * side_floats(s));
  p.panels = room, p.turned = p.panels + s.Fp * s.Kp, p.offsets = p.turned + s.Fp * s.Kp;
  p.mean = p.offsets + s.Fp, p.slope = p.mean + s.Kp, p.curve = p.slope + s.Kp;
  const float* w = side.frequencies + set * s.F * s.K;
  for (int f = 0; f < s.F; ++f) for (int c = 0; c < s.K; ++c) p.turned[f * s.Kp + c] = w[f * s.K + c];
  tiles(8, s.Fp, [&](auto t, int, int f) {
    for (int c = 0; c < s.K; ++c) for (int i = 0; i < width(t); ++i) p.panels[f * s.K + c * width(t) + i] = p.turned[(f + i) * s.Kp + c] * LOG2E;
  });
  for (int f = 0; f < s.F; ++f) p.offsets[f] = side.offsets[set * s.F + f] * LOG2E;
  for (int c = 0; c < s.K; ++c) p.mean[c] = side.mean[set * s.K + c], p.slope[c] = side.slope[set * s.K + c], p.curve[c] = side.curve[set * s.K + c];
}

struct State {  // sums of one head relative to exp(rel); run is the largest logarithm of every feature so far
  float *S, *Z, *rel, *run;
  bool settled;  // all references are 0 and stay so: only of elu, whose logarithms are at most 0
  static size_t floats(const Shape& s) { return (size_t)s.Fp * s.Vp + 3 * s.Fp; }
  void at(const Shape& s, float* p) { S = p, Z = S + s.Fp * s.Vp, rel = Z + s.Fp, run = rel + s.Fp; }
  void clear(const Shape& s) {
    memset(S, 0, sizeof(float) * (s.Fp * s.Vp + s.Fp));
    for (int f = 0; f < s.Fp; ++f) rel[f] = run[f] = s.map == RELU ? 0 : NONE;
    settled = false;
  }
  void settle(const Shape& s) {
    settled = s.map == ELU;
    for (int f = 0; f < s.F && settled; ++f) settled = rel[f] == 0;
  }
  void read(const Shape& s, int64_t bg) {  // the state before the call
    clear(s);
    if (!s.c.sums) return;
    for (int f = 0; f < s.F; ++f) {
      const float* from = s.c.sums + (bg * s.F + f) * (s.V + 1);
      memcpy(S + f * s.Vp, from, sizeof(float) * s.V);
      Z[f] = from[s.V];
      if (s.map == RELU) continue;
      float scale = s.c.scale[bg * s.F + f];
      rel[f] = run[f] = scale < NONE ? NONE : s.map == ELU ? scale : scale * LOG2E;
    }
    settle(s);
  }
  void write(const Shape& s, int64_t bg) const {  // the state after the call, relative to the largest logarithms
    if (!s.c.sums_after) return;
    for (int f = 0; f < s.F; ++f) {
      float factor = 1;
      if (s.map != RELU) {
        float scale = s.map == ELU ? run[f] : run[f] * LN2;
        s.c.scale_after[bg * s.F + f] = run[f] == NONE ? -INFINITY : scale;
        factor = run[f] == NONE ? 0 : exp2f((rel[f] - (s.map == ELU ? scale : scale * LOG2E)) * s.unit);
      }
      float* to = s.c.sums_after + (bg * s.F + f) * (s.V + 1);
      for (int j = 0; j < s.V; ++j) to[j] = S[f * s.Vp + j] * factor;
      to[s.V] = Z[f] * factor;
    }
  }
  void merge(const Shape& s, const State& other) {  // this one, then the other
    for (int f = 0; f < s.F; ++f) {
      float top = fmaxf(rel[f], other.rel[f]), mine = exp2f((rel[f] - top) * s.unit), theirs = exp2f((other.rel[f] - top) * s.unit);
      rel[f] = top, run[f] = fmaxf(run[f], other.run[f]);
      Z[f] = Z[f] * mine + other.Z[f] * theirs;
      for (int j = 0; j < s.Vp; j += W) store(S + f * s.Vp + j, load(S + f * s.Vp + j) * mine + load(other.S + f * s.Vp + j) * theirs);
    }
    settle(s);
  }
};

struct Work {  // the memory of one thread
  float *K, *KT, *Q, *P, *dP, *key_room, *query_room, *value_room, *VT, *out_room, *grad_room, *dN, *G, *ST, *dV;
  float *now, *top, *factor, *running, *row, *scale, *dd, *sums;
  float *near_query, *near_key, *near_value, *near_turned, *near_pairs, *near_dpairs, *near_sum, *near_grad;  // with a window
  float *largest, *under, *dots;  // of every row: the largest logarithm, of base 2, the denominator relative to it, and dO.O
  uint8_t live[C];
  State s;
  static size_t floats(const Shape& s) {
    size_t cf = (size_t)C * s.Fp, ck = (size_t)C * s.Kp, cv = (size_t)C * s.Vp, fv = (size_t)s.Fp * s.Vp;
    size_t near = s.c.within ? 4 * ck + 3 * cv + 2 * C * C : 0;
    return 4 * cf + 2 * C * C + 3 * ck + 6 * cv + fv + 4 * s.Fp + 7 * C + near + State::floats(s) + 16;
  }
  void at(const Shape& s, float* p) {
    size_t cf = (size_t)C * s.Fp, ck = (size_t)C * s.Kp, cv = (size_t)C * s.Vp;
    auto take = [&](size_t n) { float* from = p; p += n; return from; };
    K = take(cf), KT = take(cf), Q = take(cf), G = take(cf), P = take(C * C), dP = take(C * C);
    key_room = take(ck), query_room = take(ck), row = take(ck);
    value_room = take(cv), VT = take(cv), out_room = take(cv), grad_room = take(cv), dN = take(cv), dV = take(cv);
    ST = take((size_t)s.Fp * s.Vp);
    now = take(s.Fp), top = take(s.Fp), factor = take(s.Fp), running = take(s.Fp);
    scale = take(C), dd = take(C), sums = take(C), largest = take(C), under = take(C), dots = take(C), take(C);
    if (s.c.within) {
      near_query = take(ck), near_key = take(ck), near_turned = take(ck > cv ? ck : cv), near_grad = take(ck);
      near_value = take(cv), near_sum = take(cv), near_pairs = take(C * C), near_dpairs = take(C * C);
    }
    this->s.at(s, take(State::floats(s)));
  }
};

// Rows of a chunk that products work on: whole tiles, not all 64
INLINE int worked(int n) { return n == C ? C : (n + 7) / 8 * 8; }

// Logarithms of exponentials of `rows` rows into L: W x' + start_f (+ x'.(slope - curve x') for keys), of base 2
void exponents(const Shape& s, const Packed& p, Rows x, int rows, const float* start, bool own_row, float* L, float* room, float* own) {
  bool centred = false;
  for (int c = 0; c < s.K; ++c) centred = centred || p.mean[c] != 0;
  if (centred) {
    for (int i = 0; i < rows; ++i) for (int c = 0; c < s.Kp; c += W) store(room + i * s.Kp + c, load(x.x + i * x.ld + c) - load(p.mean + c));
    x = {room, s.Kp};
  }
  for (int i = 0; i < rows && own_row; ++i) {
    vf a = vf{};
    for (int c = 0; c < s.Kp; c += W) { vf y = load(x.x + i * x.ld + c); a += y * (load(p.slope + c) - load(p.curve + c) * y); }
    own[i] = sum(a) * LOG2E;
  }
  tiles(rows, s.Fp, [&](auto t, int i, int f) {
    for (int r = 0; r < height(t); ++r) for (int c = 0; c < width(t) / W; ++c) t.x[r][c] = load(start + f + c * W) + (own_row ? own[i + r] : 0.0f);
    t.add(x.x + i * x.ld, x.ld, 1, p.panels + f * s.K, width(t), 0, s.K);
    t.store_to(L + i * s.Fp + f, s.Fp);
  });
}
INLINE void zero_rows(float* x, int from, int to, int wide) { if (from < to) memset(x + from * wide, 0, sizeof(float) * (to - from) * wide); }

// The keys of a chunk relative to its references, into w.K; returns how many of the n keys the chunk holds. w.now has the
// references, w.top the largest logarithms after the chunk. With `given` references are those of w.now already.
int map_keys(const Shape& s, Work& w, const Packed* p, Rows x, int n, const uint8_t* live, bool causal, bool given) {
  const int M = worked(n), Fp = s.Fp;
  float* K = w.K;
  auto is_live = [&](int j) { return !live || live[j]; };
  if (s.map == RELU || (s.map == ELU && w.s.settled)) {
    for (int f = 0; f < Fp; ++f) w.now[f] = f < s.F ? 0 : NONE;
    for (int i = 0; i < M; ++i)
      for (int f = 0; f < Fp; f += W) {
        vf y = load(x.x + i * x.ld + f), above = max_(vf{}, y);
        store(K + i * Fp + f, s.map == RELU ? above : above + exp2_(min_(vf{}, y) * LOG2E));
      }
  } else {
    if (s.map == ELU) {
      for (int i = 0; i < M; ++i) for (int f = 0; f < Fp; f += W) store(K + i * Fp + f, min_(vf{}, load(x.x + i * x.ld + f)));
    } else exponents(s, *p, x, M, p->offsets, true, K, w.row, w.scale);
    if (!given) {
      int first = 0;
      while (first < n && !is_live(first)) ++first;
      bool empty = w.s.run[0] == NONE;
      int start = empty ? first : first == 0 ? 0 : n;  // a key that all rows see which see anything of this chunk
      bool jumps = false;
      for (int f = 0; f < Fp; f += W) {
        vf now = load(w.s.run + f), top = now;
        if (start < n) now = max_(now, load(K + start * Fp + f));
        for (int j = first; j < n; ++j) if (is_live(j)) top = max_(top, load(K + j * Fp + f));
        if (!causal) now = top;
        for (int c = 0; c < W; ++c) jumps = jumps || (f + c < s.F && top[c] - now[c] > s.jump());
        store(w.now + f, now), store(w.top + f, top);
      }
      if (jumps) {
        auto far = [&](int j) { for (int f = 0; f < s.F; ++f) if (K[j * Fp + f] - w.now[f] > s.jump()) return true; return false; };
        for (int j = first; j < n; ++j) if (is_live(j) && far(j)) { n = j; break; }
        for (int f = 0; f < s.F; ++f) { w.top[f] = fmaxf(w.s.run[f], w.now[f]); for (int j = first; j < n; ++j) if (is_live(j)) w.top[f] = fmaxf(w.top[f], K[j * Fp + f]); }
      }
      for (int f = s.F; f < Fp; ++f) w.now[f] = w.top[f] = NONE;
    }
    for (int i = 0; i < M; ++i)
      for (int f = 0; f < Fp; f += W) {
        vf log = load(K + i * Fp + f), y = exp2_((log - load(w.now + f)) * s.unit);
        y = log <= NONE ? vf{} : y;  // a key whose square overflows is as if absent
        store(K + i * Fp + f, s.map == ELU ? y * (max_(vf{}, load(x.x + i * x.ld + f)) + 1.0f) : y);
      }
  }
  for (int i = 0; i < n; ++i) {
    if (!is_live(i)) zero_rows(K, i, i + 1, Fp);
    for (int f = s.F; f < Fp; ++f) K[i * Fp + f] = 0;
  }
  zero_rows(K, n, M, Fp);
  return n;
}

// The queries of a chunk against the references w.now, each row times a factor that its denominator has too, into w.Q.
void map_queries(const Shape& s, Work& w, const Packed* p, Rows x, int M) {
  const int Fp = s.Fp;
  float* Q = w.Q;
  if (s.map == EXPONENTIALS) {
    for (int f = 0; f < Fp; f += W) store(w.running + f, load(p->offsets + f) + load(w.now + f));
    exponents(s, *p, x, M, w.running, s.c.within > 0, Q, w.row, w.scale);  // what a row's features share cancels but for the window
  } else if (s.map == ELU) {
    float most = w.now[0];
    for (int f = 1; f < s.F; ++f) most = fmaxf(most, w.now[f]);
    for (int f = 0; f < Fp; ++f) w.running[f] = w.now[f] == NONE ? NONE : w.now[f] - most;
  }
  for (int i = 0; i < M; ++i) {
    float* row = Q + i * Fp;
    const float* from = x.x + i * x.ld;
    if (s.map == RELU) {
      for (int f = 0; f < Fp; f += W) store(row + f, max_(vf{}, load(from + f)));
      continue;
    }
    vf top = all(NONE);
    if (s.map == ELU && w.s.settled && s.F == Fp) {
      for (int f = 0; f < Fp; f += W) top = max_(top, load(from + f));
      vf most = all(fminf(largest(top), 0));
      for (int f = 0; f < Fp; f += W) { vf y = load(from + f); store(row + f, max_(vf{}, y) + exp2_((min_(vf{}, y) - most) * LOG2E)); }
      continue;
    }
    if (s.map == ELU) {  // both terms relative to their largest first: their sum may be far larger than what differs
      float own = NONE;
      for (int f = 0; f < s.F; ++f) own = fmaxf(own, from[f]);
      vf base = all(fminf(own, 0));
      for (int f = 0; f < Fp; f += W) store(row + f, min_(vf{}, load(from + f)) - base + load(w.running + f));
    }
    for (int f = 0; f < Fp; f += W) top = max_(top, load(row + f));
    w.largest[i] = fmaxf(largest(top), NONE);
    vf most = all(w.largest[i]);
    for (int f = 0; f < Fp; f += W) {
      vf y = exp2_((load(row + f) - most) * s.unit);
      store(row + f, s.map == ELU ? y * (max_(vf{}, load(from + f)) + 1.0f) : y);
    }
  }
}

// From gradients of features (G) to those of the rows x that were mapped to phi; `rows` of them, into `to`.
void unmap(const Shape& s, Work& w, const Packed* p, Rows x, const float* phi, float* G, int rows, Room to) {
  const int Fp = s.Fp;
  if (s.map != EXPONENTIALS) {
    for (int i = 0; i < rows; ++i)
      for (int f = 0; f < Fp; f += W) {
        vf y = load(x.x + i * x.ld + f), g = load(G + i * Fp + f);
        // elu: phi / (1 + max(x, 0)) is the derivative, 1 above 0 and e^x below, in the units of phi
        vf d = s.map == ELU ? g * load(phi + i * Fp + f) / (max_(vf{}, y) + 1.0f) : (y > 0.0f ? g : vf{});
        store(to.x + i * to.ld + f, d);
      }
    return;
  }
  for (int i = 0; i < rows; ++i) {
    vf a = vf{};
    for (int f = 0; f < Fp; f += W) { vf d = load(G + i * Fp + f) * load(phi + i * Fp + f); store(G + i * Fp + f, d); a += d; }
    w.sums[i] = sum(a);
  }
  tiles(rows, s.Kp, [&](auto t, int i, int c) {
    for (int r = 0; r < height(t); ++r)
      for (int n = 0; n < width(t) / W; ++n) {
        int at = c + n * W;
        vf y = load(x.x + (i + r) * x.ld + at) - load(p->mean + at);
        t.x[r][n] = w.sums[i + r] * (load(p->slope + at) - 2.0f * load(p->curve + at) * y);
      }
    t.add(G + i * Fp, Fp, 1, p->turned + c, s.Kp, 0, s.F);
    t.store_to(to.x + i * to.ld + c, to.ld);
  });
}

// ---- one head ----
struct Group {  // a key-value head with some of its query heads
  const Shape& s;
  const Call& c;
  int64_t b, g, slice, low, high;  // query heads low..high
  const Packed *pq, *pk;
  Strip k, v;
  const uint8_t *seen, *begins;
  Group(const Shape& s, int64_t item)
      : s(s), c(s.c), b(item / c.slices / c.G), g(item / c.slices % c.G), slice(item % c.slices),
        low(g * (c.H / c.G) + c.H / c.G * slice / c.slices), high(g * (c.H / c.G) + c.H / c.G * (slice + 1) / c.slices),
        pq(s.queries ? s.queries + (c.sets > 1 ? g : 0) : nullptr), pk(s.keys ? s.keys + (c.sets > 1 ? g : 0) : nullptr),
        k(c.k, b, g, c.bf16), v(c.v, b, g, c.bf16), seen(c.seen ? c.seen + b * c.S : nullptr), begins(c.begins ? c.begins + b * c.S : nullptr) {}
  Strip head(const Matrix& m, int64_t h) const { return Strip(m, b, h, c.bf16); }
  int64_t past() const { return c.causal || c.begins ? c.S - c.T : 0; }  // keys before the first row
  // Of the keys that are seen through features: rows stand `ahead` rows later than the keys of their chunk, and the first
  // key in whose chunk rows stand
  int64_t ahead() const { return c.within - past(); }
  int64_t unread() const { return past() > c.within ? past() - c.within : 0; }
  int64_t end_of_run(int64_t from) const {  // of a packed sequence
    int64_t to = from + 1;
    while (to < c.S && begins && !begins[to]) ++to;
    return begins ? to : c.S;
  }
  const uint8_t* live(int64_t t, int n) const {
    if (!seen) return nullptr;
    for (int j = 0; j < n; ++j) if (!seen[t + j]) return seen + t;
    return nullptr;
  }
};

struct Chunk { int64_t t; int n; const uint8_t* live; Rows x, v; };

// The next chunk of keys from t on, mapped: its features are in w.K
INLINE Chunk next_keys(const Group& a, Work& w, int64_t t, int64_t to, bool causal) {
  int n = (int)(to - t < C ? to - t : C);
  const uint8_t* live = a.live(t, n);
  Rows x = a.k.read(t, n, worked(n), a.s.K, live, w.key_room);
  n = map_keys(a.s, w, a.pk, x, n, live, causal, false);
  return {t, n, live, x, a.v.read(t, n, worked(n), a.s.V, live, w.value_room)};
}
// Brings sums that stand relative to w.s.rel to w.now, S lying as (F, V) or as (V, F)
INLINE void rescale(const Shape& s, Work& w, bool turned) {
  State& a = w.s;
  if (s.map == RELU || a.settled) return;
  bool changed = false;
  for (int f = 0; f < s.Fp; ++f) {
    w.factor[f] = a.rel[f] == w.now[f] ? 1.0f : exp2f((a.rel[f] - w.now[f]) * s.unit);
    changed = changed || w.factor[f] != 1.0f;
    a.Z[f] *= w.factor[f], a.rel[f] = w.now[f], a.run[f] = w.top[f];
  }
  if (changed && turned) for (int v = 0; v < s.V; ++v) for (int f = 0; f < s.Fp; f += W) store(a.S + v * s.Fp + f, load(a.S + v * s.Fp + f) * load(w.factor + f));
  if (changed && !turned) for (int f = 0; f < s.Fp; ++f) if (w.factor[f] != 1.0f) for (int v = 0; v < s.Vp; v += W) store(a.S + f * s.Vp + v, load(a.S + f * s.Vp + v) * w.factor[f]);
}
INLINE void add_keys(const Shape& s, Work& w, const Chunk& c) {  // S += K' V, Z += K' 1
  add_product({w.s.S, s.Vp}, s.Fp, s.Vp, w.K, 1, s.Fp, c.v, c.n);
  for (int f = 0; f < s.Fp; f += W) { vf z = load(w.s.Z + f); for (int j = 0; j < c.n; ++j) z += load(w.K + j * s.Fp + f); store(w.s.Z + f, z); }
}
void absorb(const Group& a, Work& w, int64_t from, int64_t to, bool causal) {
  for (int64_t t = from; t < to;) {
    Chunk c = next_keys(a, w, t, to, causal);
    rescale(a.s, w, false);
    add_keys(a.s, w, c);
    if (!w.s.settled) w.s.settle(a.s);
    t += c.n;
  }
}

// ---- pairs within the window ----
// With q times the kernel's scale in w.near_query and keys j..j+m as columns in w.near_turned: the logarithms, of base 2, of
// their pairs with n rows at positions p.., into w.near_pairs; NONE where a row does not see a key.
void near_logarithms(const Group& a, Work& w, int64_t p, int n, int M, int64_t j, int m, const uint8_t* live) {
  const Shape& s = a.s;
  const int64_t within = a.c.within, from = p - within + 1 - j, to = p + 1 - a.c.strict - j;  // row i sees from + i to to + i
  const int columns = worked(m) < W ? W : worked(m);
  tiles<W == 16 ? 1 : 2>(M, columns, [&](auto t, int i, int c) {
    if (c >= to + i + height(t) || c + width(t) <= from + i) return;
    t.clear();
    t.add(w.near_query + i * s.Kp, s.Kp, 1, w.near_turned + c, C, 0, s.K);
    t.store_to(w.near_pairs + i * C + c, C);
  });
  vf place;
  for (int c = 0; c < W; ++c) place[c] = (float)c;
  for (int i = 0; i < M; ++i) {
    const vf low = all((float)(from + i > 0 ? from + i : 0)), high = all(i < n ? (float)(to + i < m ? to + i : m) : 0.0f);
    for (int c = 0; c < columns; c += W) {
      vf at = place + (float)c, log = load(w.near_pairs + i * C + c);
      log = at >= low ? log : all(NONE);
      store(w.near_pairs + i * C + c, at < high ? log : all(NONE));
    }
    for (int c = 0; live && c < m; ++c) if (!live[c]) w.near_pairs[i * C + c] = NONE;
  }
}
INLINE void scale_queries(const Shape& s, Work& w, Rows x, int M) {
  const float scale = (float)s.c.kernel_scale * LOG2E;
  for (int i = 0; i < M; ++i) for (int c = 0; c < s.Kp; c += W) store(w.near_query + i * s.Kp + c, load(x.x + i * x.ld + c) * scale);
}
// f(j, m, live, keys) for the keys that some of n rows at positions p.. see, C at a time
template <class F> INLINE void near_blocks(const Group& a, Work& w, int64_t p, int n, F f) {
  for (int64_t j = p - a.c.within + 1 > 0 ? p - a.c.within + 1 : 0, end = p + n - a.c.strict; j < end; j += C) {
    int m = (int)(end - j < C ? end - j : C);
    const uint8_t* live = a.live(j, m);
    Rows keys = a.k.read(j, m, worked(m), a.s.K, live, w.near_key);
    transpose(keys.x, keys.ld, worked(m), a.s.Kp, w.near_turned, C);
    f(j, m, live, keys);
  }
}
// Adds what n rows x at positions p.. see within the window to their sums in w.near_sum, w.under and w.largest
void add_near(const Group& a, Work& w, Rows x, int64_t p, int n, int M) {
  const Shape& s = a.s;
  scale_queries(s, w, x, M);
  near_blocks(a, w, p, n, [&](int64_t j, int m, const uint8_t* live, Rows) {
    near_logarithms(a, w, p, n, M, j, m, live);
    const int columns = worked(m) < W ? W : worked(m);
    for (int i = 0; i < M; ++i) {
      float* row = w.near_pairs + i * C;
      vf top = all(w.largest[i]);
      for (int c = 0; c < columns; c += W) top = max_(top, load(row + c));
      const float most = largest(top), factor = most == w.largest[i] ? 1.0f : exp2f(w.largest[i] - most);
      vf total = vf{};
      for (int c = 0; c < columns; c += W) {
        vf log = load(row + c), y = exp2_(log - most);
        y = log <= NONE ? vf{} : y;
        store(row + c, y), total += y;
      }
      w.under[i] = w.under[i] * factor + sum(total), w.largest[i] = most;
      if (factor != 1.0f) for (int c = 0; c < s.Vp; c += W) store(w.near_sum + i * s.Vp + c, load(w.near_sum + i * s.Vp + c) * factor);
    }
    add_product({w.near_sum, s.Vp}, M, s.Vp, w.near_pairs, C, 1, a.v.read(j, m, worked(m), s.V, live, w.near_value), m);
  });
}
// The outputs of n rows of one query head, from row `at` on, with `far` over the state and, with `own`, over the keys of their
// chunk; then over those of the window, if there is one
void read_rows(const Group& a, Work& w, int64_t h, int64_t at, int n, const Chunk* own, bool far = true) {
  const Shape& s = a.s;
  const bool window = a.c.within > 0;
  const int M = worked(n), Fp = s.Fp;
  Strip out = a.head(a.c.out, h);
  Rows x = a.head(a.c.q, h).read(at, n, M, s.K, nullptr, w.query_room);
  if (far) map_queries(s, w, a.pq, x, M);
  if (own) pairs(w.P, M, {w.Q, Fp}, w.KT, Fp, nullptr);
  for (int i = 0; i < M; ++i) {
    vf d = vf{};
    for (int f = 0; far && f < Fp; f += W) d += load(w.Q + i * Fp + f) * load(w.s.Z + f);
    for (int j = 0; own && j <= i; j += W) d += load(w.P + i * C + j);
    w.under[i] = sum(d);
    w.scale[i] = window ? 1 : w.under[i] == 0 ? 0 : 1 / w.under[i];
    if (!far) w.largest[i] = NONE;
  }
  Room to = out.place(at, n, M, s.V, w.out_room), sums = window ? Room{w.near_sum, s.Vp} : to;
  if (!far) zero_rows(sums.x, 0, M, s.Vp);
  else tiles(M, s.Vp, [&](auto t, int i, int j) {
    t.clear();
    t.add(w.Q + i * Fp, Fp, 1, w.s.S + j, s.Vp, 0, Fp);
    if (own) t.add(w.P + i * C, C, 1, own->v.x + j, own->v.ld, 0, i + height(t) < n ? i + height(t) : n);
    for (int r = 0; r < height(t); ++r) for (auto& x : t.x[r]) x *= w.scale[i + r];
    t.store_to(sums.x + i * sums.ld + j, sums.ld);
  });
  if (window) {
    add_near(a, w, x, a.past() + at, n, M);
    float* log_sums = a.c.log_sums + (a.b * a.c.H + h) * a.c.T + at;
    for (int i = 0; i < M; ++i) {
      const float under = w.under[i], over = under == 0 ? 0 : 1 / under;
      for (int j = 0; j < s.Vp; j += W) store(to.x + i * to.ld + j, load(w.near_sum + i * s.Vp + j) * over);
      if (i < n) log_sums[i] = under == 0 ? -INFINITY : w.largest[i] + log2f(under);
    }
  }
  out.write(at, n, s.V, to);
}
// f(at, n) for the rows that see no key of this call through features
template <class F> INLINE void near_rows(const Group& a, F f) {
  const int64_t last = (a.c.within < a.c.S ? a.c.within : a.c.S) - a.past();
  for (int64_t at = 0; at < last; at += C) f(at, (int)(last - at < C ? last - at : C));
}
// Causal rows at from..to, after the state in w
void sweep(const Group& a, Work& w, int64_t from, int64_t to) {
  const int64_t within = a.c.within, unread = a.unread(), ahead = a.ahead();
  if (within) {
    memcpy(w.now, w.s.rel, sizeof(float) * a.s.Fp);
    near_rows(a, [&](int64_t at, int n) { for (int64_t h = a.low; h < a.high; ++h) read_rows(a, w, h, at, n, nullptr, a.c.sums != nullptr); });
    to -= within;
  }
  for (int64_t t = from; t < to;) {
    bool reading = t >= unread;
    Chunk c = next_keys(a, w, t, reading || unread > to ? to : unread, true);
    rescale(a.s, w, false);
    if (reading) {
      transpose(w.K, a.s.Fp, worked(c.n), a.s.Fp, w.KT, C);
      for (int64_t h = a.low; h < a.high; ++h) read_rows(a, w, h, t + ahead, c.n, &c);
    }
    if (t + c.n < to || a.c.sums_after) add_keys(a.s, w, c);
    if (!w.s.settled) w.s.settle(a.s);
    t += c.n;
  }
  if (within && to >= 0 && a.c.sums_after) absorb(a, w, to, to + 1, true);  // the next row sees one key more through features
}
void read_all(const Group& a, Work& w, int64_t from, int64_t to) {  // rows that see all keys of the state
  memcpy(w.now, w.s.rel, sizeof(float) * a.s.Fp);
  for (int64_t t = from; t < to; t += C)
    for (int64_t h = a.low; h < a.high; ++h) read_rows(a, w, h, t, (int)(to - t < C ? to - t : C), nullptr);
}

// ---- gradients of one head ----
struct Record { int64_t t; int32_t n, reading; };  // a chunk of the sweep from the left; its references lie beside it
struct Tape {
  Record* chunks;
  float *references, *inverse;  // (chunks, Fp) and (heads, T): one over the denominators
  int64_t used, room;
  bool full;
  static size_t least(const Shape& s) { return (size_t)(s.c.S / C + 2); }
  void clear() { used = 0; }
  void add(const Shape& s, int64_t t, int n, bool reading, const float* now) {
    if (used == room) {  // only where keys jump again and again
      room *= 2;
      Record* more = (Record*)realloc(chunks, sizeof(Record) * room);
      float* wider = (float*)realloc(references, sizeof(float) * room * s.Fp);
      if (more) chunks = more;
      if (wider) references = wider;
      full = full || !more || !wider;
      if (full) { room /= 2; return; }
    }
    chunks[used] = {t, n, reading};
    memcpy(references + used++ * s.Fp, now, sizeof(float) * s.Fp);
  }
};
// dN = dO / d into w.dN and dd = -dO.O / d into w.dd, of n rows
void towards_sums(const Group& a, Work& w, int64_t h, int64_t at, int n, int M, const float* inverse) {
  const Shape& s = a.s;
  Rows g = a.head(a.c.grad, h).read(at, n, M, s.V, nullptr, w.grad_room), o = a.head(a.c.out, h).read(at, n, M, s.V, nullptr, w.out_room);
  for (int i = 0; i < M; ++i) {
    float over = i < n ? inverse[i] : 0;
    vf dot = vf{};
    for (int j = 0; j < s.Vp; j += W) { vf x = load(g.x + i * g.ld + j); dot += x * load(o.x + i * o.ld + j); store(w.dN + i * s.Vp + j, x * over); }
    w.dd[i] = over == 0 ? 0 : -sum(dot) * over;
    if (over == 0) zero_rows(w.dN, i, i + 1, s.Vp);
  }
}
// From logarithms of pairs in w.near_pairs to weights there, and to gradients of the logarithms in w.near_dpairs; dO is in g
void near_gradients(const Shape& s, Work& w, int M, int m, Rows g, const float* VT, const float* log_sums, int n) {
  const int columns = worked(m) < W ? W : worked(m);
  tiles<W == 16 ? 1 : 2>(M, columns, [&](auto t, int i, int c) {
    for (int r = 0; r < height(t); ++r) for (auto& x : t.x[r]) x = all(-w.dots[i + r]);
    t.add(g.x + i * g.ld, g.ld, 1, VT + c, C, 0, s.V);
    t.store_to(w.near_dpairs + i * C + c, C);
  });
  for (int i = 0; i < M; ++i)
    for (int c = 0; c < columns; c += W) {
      vf log = load(w.near_pairs + i * C + c), y = exp2_(min_(vf{}, log - (i < n ? log_sums[i] : 0.0f)));
      y = log <= NONE ? vf{} : y;
      vf d = y * load(w.near_dpairs + i * C + c);
      store(w.near_pairs + i * C + c, y), store(w.near_dpairs + i * C + c, log <= NONE ? vf{} : d);
    }
}
// dO of n rows; dO.O goes into w.dots
Rows near_directions(const Group& a, Work& w, int64_t h, int64_t at, int n, int M) {
  Rows g = a.head(a.c.grad, h).read(at, n, M, a.s.V, nullptr, w.grad_room), o = a.head(a.c.out, h).read(at, n, M, a.s.V, nullptr, w.out_room);
  for (int i = 0; i < M; ++i) {
    vf dot = vf{};
    for (int j = 0; j < a.s.Vp; j += W) dot += load(g.x + i * g.ld + j) * load(o.x + i * o.ld + j);
    w.dots[i] = sum(dot);
  }
  return g;
}
INLINE void add_near_gradient(const Shape& s, Work& w, int M, float scale, Room to) {
  for (int i = 0; i < M; ++i) for (int c = 0; c < s.Kp; c += W) store(to.x + i * to.ld + c, load(to.x + i * to.ld + c) + load(w.near_grad + i * s.Kp + c) * scale);
}
// dq of n rows, with `far` through features; the state lies as (V, F) in w.s.S. With `own`, the keys of their chunk are in w.K
// and its values in w.VT.
void queries_backward(const Group& a, Work& w, int64_t h, int64_t at, int n, const Chunk* own, float* inverse, bool far = true) {
  const Shape& s = a.s;
  const bool window = a.c.within > 0;
  const int M = worked(n), Fp = s.Fp;
  Rows x = a.head(a.c.q, h).read(at, n, M, s.K, nullptr, w.query_room);
  const float* log_sums = window ? a.c.log_sums + (a.b * a.c.H + h) * a.c.T + at : nullptr;
  if (window) scale_queries(s, w, x, M);
  Strip dq = a.head(a.c.dq, h);
  Room to = dq.place(at, n, M, s.K, w.query_room == x.x ? w.row : w.query_room);
  if (far) {
    map_queries(s, w, a.pq, x, M);
    memcpy(w.running, w.s.Z, sizeof(float) * Fp);
    for (int i = 0; i < n; ++i) {
      if (window) { inverse[i] = exp2f(fminf(w.largest[i] - log_sums[i], 0)); continue; }
      vf d = vf{};
      for (int f = 0; f < Fp; f += W) {
        vf z = load(w.running + f);
        if (own) z += load(w.K + i * Fp + f), store(w.running + f, z);
        d += load(w.Q + i * Fp + f) * z;
      }
      float y = sum(d);
      inverse[i] = y == 0 ? 0 : 1 / y;
    }
    towards_sums(a, w, h, at, n, M, inverse);
    if (own) pairs(w.dP, M, {w.dN, s.Vp}, w.VT, s.Vp, w.dd);
    tiles(M, Fp, [&](auto t, int i, int f) {
      for (int r = 0; r < height(t); ++r) for (int c = 0; c < width(t) / W; ++c) t.x[r][c] = w.dd[i + r] * load(w.s.Z + f + c * W);
      t.add(w.dN + i * s.Vp, s.Vp, 1, w.s.S + f, Fp, 0, s.V);
      if (own) t.add(w.dP + i * C, C, 1, w.K + f, Fp, 0, i + height(t) < n ? i + height(t) : n);
      t.store_to(w.G + i * Fp + f, Fp);
    });
    unmap(s, w, a.pq, x, w.Q, w.G, M, to);
  } else for (int i = 0; i < M; ++i) memset(to.x + i * to.ld, 0, sizeof(float) * s.Kp);
  if (window) {
    Rows g = near_directions(a, w, h, at, n, M);
    zero_rows(w.near_grad, 0, M, s.Kp);
    const int64_t p = a.past() + at;
    near_blocks(a, w, p, n, [&](int64_t j, int m, const uint8_t* live, Rows keys) {
      near_logarithms(a, w, p, n, M, j, m, live);
      Rows v = a.v.read(j, m, worked(m), s.V, live, w.near_value);
      transpose(v.x, v.ld, worked(m), s.Vp, w.near_turned, C);
      near_gradients(s, w, M, m, g, w.near_turned, log_sums, n);
      add_product({w.near_grad, s.Kp}, M, s.Kp, w.near_dpairs, C, 1, keys, m);
    });
    add_near_gradient(s, w, M, (float)a.c.kernel_scale, to);
  }
  dq.write(at, n, s.K, to);
}
// R += Q' dN and rr += Q' dd, where R lies as (F, V) in w.ST and rr in w.top
INLINE void add_rows(const Shape& s, Work& w, int n) {
  add_product({w.ST, s.Vp}, s.Fp, s.Vp, w.Q, 1, s.Fp, {w.dN, s.Vp}, n);
  for (int f = 0; f < s.Fp; f += W) { vf r = load(w.top + f); for (int i = 0; i < n; ++i) r += w.dd[i] * load(w.Q + i * s.Fp + f); store(w.top + f, r); }
}
// Adds what the rows that see keys t..t+n within the window say of these keys, to `to`, and of their values, to w.dV
void near_keys_backward(const Group& a, Work& w, int64_t t, int n, const uint8_t* live, Rows x, Rows v, Room to) {
  const Shape& s = a.s;
  const int64_t past = a.past(), end = t + n - 1 + a.c.within < a.c.S ? t + n - 1 + a.c.within : a.c.S;
  zero_rows(w.near_grad, 0, worked(n), s.Kp);
  transpose(x.x, x.ld, worked(n), s.Kp, w.near_turned, C);
  transpose(v.x, v.ld, worked(n), s.Vp, w.VT, C);
  for (int64_t h = a.low; h < a.high; ++h)
    for (int64_t p = t > past ? t : past; p < end; p += C) {
      const int rows = (int)(end - p < C ? end - p : C), M = worked(rows);
      scale_queries(s, w, a.head(a.c.q, h).read(p - past, rows, M, s.K, nullptr, w.near_key), M);
      near_logarithms(a, w, p, rows, M, t, n, live);
      Rows g = near_directions(a, w, h, p - past, rows, M);
      near_gradients(s, w, M, n, g, w.VT, a.c.log_sums + (a.b * a.c.H + h) * a.c.T + p - past, rows);
      add_product({w.dV, s.Vp}, worked(n), s.Vp, w.near_pairs, 1, C, g, rows);
      add_product({w.near_grad, s.Kp}, worked(n), s.Kp, w.near_dpairs, 1, C, {w.near_query, s.Kp}, rows);
    }
  add_near_gradient(s, w, worked(n), LN2, to);  // w.near_query has the kernel's scale and log2(e)
}
// dk and dv of the keys t..t+n, with `far` through features, against the references w.now; with `reading` the rows of the
// chunk see its keys
void keys_backward(const Group& a, Work& w, float* RT, int64_t t, int n, bool reading, const float* inverse, bool far = true) {
  const Shape& s = a.s;
  const Call& c = a.c;
  const int M = worked(n), Fp = s.Fp;
  const uint8_t* live = a.live(t, n);
  Rows x = a.k.read(t, n, M, s.K, live, w.key_room);
  Rows v = a.v.read(t, n, M, s.V, live, w.value_room);
  if (far) {
    map_keys(s, w, a.pk, x, n, live, true, true);
    transpose(w.ST, s.Vp, Fp, s.Vp, RT, Fp);
    tiles(M, s.Vp, [&](auto u, int i, int j) {
      u.clear();
      u.add(w.K + i * Fp, Fp, 1, w.ST + j, s.Vp, 0, Fp);
      u.store_to(w.dV + i * s.Vp + j, s.Vp);
    });
    tiles(M, Fp, [&](auto u, int i, int f) {
      for (auto& row : u.x) for (int m = 0; m < width(u) / W; ++m) row[m] = load(w.top + f + m * W);
      u.add(v.x + i * v.ld, v.ld, 1, RT + f, Fp, 0, s.V);
      u.store_to(w.G + i * Fp + f, Fp);
    });
  } else zero_rows(w.dV, 0, M, s.Vp);
  if (reading) {
    const int64_t at = t + a.ahead();
    transpose(w.K, Fp, M, Fp, w.KT, C);
    transpose(v.x, v.ld, M, s.Vp, w.VT, C);
    for (int64_t h = a.low; h < a.high; ++h) {
      map_queries(s, w, a.pq, a.head(c.q, h).read(at, n, M, s.K, nullptr, w.query_room), M);
      towards_sums(a, w, h, at, n, M, inverse + (h - a.low) * c.T + at);
      pairs(w.P, M, {w.Q, Fp}, w.KT, Fp, nullptr);
      pairs(w.dP, M, {w.dN, s.Vp}, w.VT, s.Vp, w.dd);
      // Row i sees key j <= i: the pairs of keys j.. begin at row j
      tiles(M, s.Vp, [&](auto u, int j, int d) {
        u.load_from(w.dV + j * s.Vp + d, s.Vp);
        u.add(w.P + j, 1, C, w.dN + d, s.Vp, j, n);
        u.store_to(w.dV + j * s.Vp + d, s.Vp);
      });
      tiles(M, Fp, [&](auto u, int j, int f) {
        u.load_from(w.G + j * Fp + f, Fp);
        u.add(w.dP + j, 1, C, w.Q + f, Fp, j, n);
        u.store_to(w.G + j * Fp + f, Fp);
      });
      add_rows(s, w, n);
    }
  }
  bool narrow = c.bf16 && !c.wide;
  int64_t head = a.g * c.slices + a.slice;
  Strip dk(c.dk, a.b, head, narrow), dv(c.dv, a.b, head, narrow);
  Room to = dk.place(t, n, M, s.K, w.query_room);
  if (far) unmap(s, w, a.pk, x, w.K, w.G, M, to);
  else for (int i = 0; i < M; ++i) memset(to.x + i * to.ld, 0, sizeof(float) * s.Kp);
  if (c.within) near_keys_backward(a, w, t, n, live, x, v, to);
  dk.write(t, n, s.K, to);
  dv.write(t, n, s.V, {w.dV, s.Vp});
}
INLINE void clear_returns(const Shape& s, Work& w) {
  memset(w.ST, 0, sizeof(float) * s.Fp * s.Vp);
  memset(w.top, 0, sizeof(float) * s.Fp);
}

void backward_causal(const Group& a, Work& w, Tape& tape, float* RT, int64_t from, int64_t to) {
  const Shape& s = a.s;
  const int64_t within = a.c.within, unread = a.unread(), ahead = a.ahead();
  w.s.clear(s);
  tape.clear();
  if (within) {
    near_rows(a, [&](int64_t at, int n) { for (int64_t h = a.low; h < a.high; ++h) queries_backward(a, w, h, at, n, nullptr, nullptr, false); });
    to -= within;
    for (int64_t t = to > 0 ? to : 0; t < a.c.S; t += C) keys_backward(a, w, RT, t, (int)(a.c.S - t < C ? a.c.S - t : C), false, nullptr, false);
  }
  for (int64_t t = from; t < to;) {  // from the left: dq
    bool reading = t >= unread;
    Chunk c = next_keys(a, w, t, reading || unread > to ? to : unread, true);
    rescale(s, w, true);
    if (reading) {
      transpose(c.v.x, c.v.ld, worked(c.n), s.Vp, w.VT, C);
      for (int64_t h = a.low; h < a.high; ++h) queries_backward(a, w, h, t + ahead, c.n, &c, tape.inverse + (h - a.low) * a.c.T + t + ahead);
    }
    add_product({w.s.S, s.Fp}, (s.V + 7) / 8 * 8 <= s.Vp ? (s.V + 7) / 8 * 8 : s.Vp, s.Fp, c.v.x, 1, c.v.ld, {w.K, s.Fp}, c.n);
    for (int f = 0; f < s.Fp; f += W) { vf z = load(w.s.Z + f); for (int j = 0; j < c.n; ++j) z += load(w.K + j * s.Fp + f); store(w.s.Z + f, z); }
    tape.add(s, t, c.n, reading, w.now);
    if (tape.full) return;
    if (!w.s.settled) w.s.settle(s);
    t += c.n;
  }
  clear_returns(s, w);
  for (int64_t i = tape.used - 1; i >= 0; --i) {  // from the right: dk and dv
    const Record& r = tape.chunks[i];
    const float *here = tape.references + i * s.Fp, *later = i + 1 < tape.used ? here + s.Fp : here;
    for (int f = 0; f < s.Fp; ++f)
      if (here[f] != later[f]) {
        float factor = exp2f((here[f] - later[f]) * s.unit);
        w.top[f] *= factor;
        for (int v = 0; v < s.Vp; v += W) store(w.ST + f * s.Vp + v, load(w.ST + f * s.Vp + v) * factor);
      }
    memcpy(w.now, here, sizeof(float) * s.Fp);
    memcpy(w.s.rel, here, sizeof(float) * s.Fp);
    w.s.settle(s);
    keys_backward(a, w, RT, r.t, r.n, r.reading, tape.inverse);
  }
}
void backward_both_ways(const Group& a, Work& w, Tape& tape, float* RT, int64_t from, int64_t to, int64_t first, int64_t last) {
  const Shape& s = a.s;
  w.s.clear(s);
  absorb(a, w, from, to, false);
  memcpy(w.now, w.s.rel, sizeof(float) * s.Fp);
  transpose(w.s.S, s.Vp, s.Fp, s.Vp, RT, s.Fp);
  memcpy(w.s.S, RT, sizeof(float) * s.Fp * s.Vp);
  clear_returns(s, w);
  for (int64_t h = a.low; h < a.high; ++h)
    for (int64_t t = first; t < last; t += C) {
      int n = (int)(last - t < C ? last - t : C);
      queries_backward(a, w, h, t, n, nullptr, tape.inverse + (h - a.low) * a.c.T + t);
      add_rows(s, w, n);
    }
  for (int64_t t = from; t < to; t += C) keys_backward(a, w, RT, t, (int)(to - t < C ? to - t : C), false, tape.inverse);
}

// ---- a call ----
void ask_for_large_pages(const Matrix& m, int64_t bytes) {  // of fresh memory: 500 times fewer page faults
#if defined(__linux__)
  uintptr_t page = 4096, begin = ((uintptr_t)m.data + page - 1) / page * page, end = ((uintptr_t)m.data + bytes) / page * page;
  if (m.data && bytes >= (4 << 20) && begin < end) madvise((void*)begin, end - begin, MADV_HUGEPAGE);
#endif
}
struct Memory {  // floats, aligned; given back at the end of the call
  float* at;
  explicit Memory(size_t floats) : at((float*)aligned_alloc(64, (floats * 4 + 127) / 64 * 64)) {
#ifdef POISON  // tests: what nobody wrote is NaN
    if (at) memset(at, 0xff, (floats * 4 + 127) / 64 * 64);
#endif
  }
  ~Memory() { free(at); }
};
struct Sides {  // the map's numbers, packed for this call
  Packed* packed;
  Memory room;
  Sides(Shape& s) : packed(nullptr), room(s.map == EXPONENTIALS ? 2 * s.c.sets * side_floats(s) : 16) {
    if (s.map != EXPONENTIALS || !room.at) return;
    packed = (Packed*)malloc(sizeof(Packed) * 2 * s.c.sets);
    if (!packed) return;
    for (int64_t i = 0; i < s.c.sets; ++i) {
      pack(s, s.c.queries, i, room.at + 2 * i * side_floats(s), packed[i]);
      pack(s, s.c.keys, i, room.at + (2 * i + 1) * side_floats(s), packed[s.c.sets + i]);
    }
    s.queries = packed, s.keys = packed + s.c.sets;
  }
  ~Sides() { free(packed); }
  bool ready(const Shape& s) const { return room.at && (s.map != EXPONENTIALS || packed); }
};
INLINE int thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}
}  // namespace

int attend(const Call& c) {
  Shape s(c);
  Sides sides(s);
  const int64_t items = c.B * c.G * c.slices, size = padded((int64_t)Work::floats(s));
  // Few heads on many threads: spans of the length. First the sums of the keys before them, in shares of equal size.
  const int64_t most = c.threads / (items > 0 ? items : 1) < 8 ? c.threads / (items > 0 ? items : 1) : 8;
  const int64_t spans = !c.begins && !c.within && most > 1 && c.S >= 8 * C * most && c.T >= 8 * C * most ? most : 1;
  const int64_t shares = spans == 1 ? 0 : c.causal ? (spans - 1) * spans : spans, state = padded((int64_t)State::floats(s));
  Memory room(c.threads * size + items * shares * state);
  if (!room.at || !sides.ready(s)) return 1;
  float* states = room.at + c.threads * size;
  auto edge = [&](int64_t whole, int64_t i, int64_t n) { return i == n ? whole : whole * i / n / C * C; };
  const int64_t last = c.causal ? edge(c.S, spans - 1, spans) : c.S;  // the shares are of the keys before it
  ask_for_large_pages(c.out, c.B * c.H * c.T * c.V * (c.bf16 ? 2 : 4));
#pragma omp parallel num_threads((int)c.threads) if (c.threads > 1)
  {
    Work w;
    w.at(s, room.at + thread() * size);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < items * shares; ++i) {
      Group a(s, i / shares);
      w.s.clear(s);
      absorb(a, w, edge(last, i % shares, shares), edge(last, i % shares + 1, shares), c.causal);
      memcpy(states + i * state, w.s.S, sizeof(float) * State::floats(s));
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < items * spans; ++i) {
      Group a(s, i / spans);
      const int64_t span = i % spans, past = a.past();
      w.s.read(s, a.b * c.G + a.g);
      for (int64_t share = 0; share < shares && (!c.causal || edge(last, share + 1, shares) <= edge(c.S, span, spans)); ++share) {
        State before;
        before.at(s, states + (i / spans * shares + share) * state);
        w.s.merge(s, before);
      }
      if (!c.causal && shares) { read_all(a, w, edge(c.T, span, spans), edge(c.T, span + 1, spans)); continue; }
      for (int64_t from = spans > 1 ? edge(c.S, span, spans) : 0; from < c.S;) {
        int64_t to = spans > 1 ? edge(c.S, span + 1, spans) : a.end_of_run(from);
        if (c.causal) sweep(a, w, from, to);
        else {
          absorb(a, w, from, to, false);
          if (!c.begins) read_all(a, w, 0, c.T);
          else if (to > past) read_all(a, w, from > past ? from - past : 0, to - past);
        }
        if (spans > 1) break;
        from = to;
        if (from < c.S) w.s.clear(s);
      }
      if (span == spans - 1 && a.slice == 0) w.s.write(s, a.b * c.G + a.g);
    }
  }
  return 0;
}

int differentiate(const Call& c) {
  Shape s(c);
  Sides sides(s);
  const int64_t items = c.B * c.G * c.slices, heads = (c.H / c.G + c.slices - 1) / c.slices + 1;
  const int64_t size = padded((int64_t)(Work::floats(s) + (size_t)s.Fp * s.Vp + heads * c.T));
  Memory room(c.threads * size);
  if (!room.at || !sides.ready(s)) return 1;
  int failed = 0;
  const int64_t width = c.bf16 ? 2 : 4, wide = c.bf16 && !c.wide ? 2 : 4;
  ask_for_large_pages(c.dq, c.B * c.H * c.T * c.K * width);
  ask_for_large_pages(c.dk, c.B * c.G * c.slices * c.S * c.K * wide);
  ask_for_large_pages(c.dv, c.B * c.G * c.slices * c.S * c.V * wide);
#pragma omp parallel num_threads((int)c.threads) if (c.threads > 1)
  {
    Work w;
    float* own = room.at + thread() * size;
    w.at(s, own);
    float* RT = own + Work::floats(s);
    Tape tape{nullptr, nullptr, RT + (size_t)s.Fp * s.Vp, 0, (int64_t)Tape::least(s), false};
    tape.chunks = (Record*)malloc(sizeof(Record) * tape.room);
    tape.references = (float*)malloc(sizeof(float) * tape.room * s.Fp);
    tape.full = !tape.chunks || !tape.references;
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < items; ++i) {
      Group a(s, i);
      const int64_t past = a.past();
      for (int64_t from = 0; from < c.S && !tape.full;) {
        int64_t to = a.end_of_run(from);
        if (c.causal) backward_causal(a, w, tape, RT, from, to);
        else if (!c.begins) backward_both_ways(a, w, tape, RT, from, to, 0, c.T);
        else backward_both_ways(a, w, tape, RT, from, to, from > past ? from - past : 0, to > past ? to - past : 0);
        from = to;
      }
    }
    if (tape.full)
#pragma omp atomic write
      failed = 1;
    free(tape.chunks);
    free(tape.references);
  }
  return failed;
}

// One position of every head: the state before, (B, G, F, V + 1), is read once and written once.
int step(const Call& c) {
  Shape s(c);
  const int Fp = s.Fp, L = s.V + 1;
  const int64_t size = padded(4 * (int64_t)Fp + 4 * s.Kp + 2 * s.Vp), groups = c.B * c.G, repeats = c.H / c.G;
  Memory room(c.threads * size);
  if (!room.at) return 1;
  // Frequencies lie as (sets, K, F) here: one pass over them, vector by vector
  auto logs = [&](const Side& side, int64_t set, const float* x, float* to, bool own_row, float* y) {
    const float *w = side.frequencies + set * s.K * s.F, *mean = side.mean + set * s.K, *slope = side.slope + set * s.K, *curve = side.curve + set * s.K;
    float own = 0;
    for (int k = 0; k < s.K; ++k) y[k] = x[k] - mean[k], own += y[k] * (slope[k] - curve[k] * y[k]);
    int f = 0;
    for (; f + W <= s.F; f += W) {
      vf a = load(side.offsets + set * s.F + f) + (own_row ? own : 0.0f);
      for (int k = 0; k < s.K; ++k) a += y[k] * load(w + (int64_t)k * s.F + f);
      store(to + f, a);
    }
    for (; f < s.F; ++f) {
      float a = side.offsets[set * s.F + f] + (own_row ? own : 0.0f);
      for (int k = 0; k < s.K; ++k) a += y[k] * w[(int64_t)k * s.F + f];
      to[f] = a;
    }
  };
#pragma omp parallel for schedule(static) num_threads((int)c.threads) if (c.threads > 1 && groups * s.F * (s.V + s.K) > 400000)
  for (int64_t item = 0; item < groups; ++item) {
    float *key = room.at + thread() * size, *query = key + Fp, *before = query + Fp, *now = before + Fp, *x = now + Fp, *y = x + 2 * s.Kp, *value = y + 2 * s.Kp, *result = value + s.Vp;
    const int64_t b = item / c.G, g = item % c.G, set = c.sets > 1 ? g : 0;
    auto read = [&](const Matrix& m, int64_t h, int64_t width, float* to) {
      Strip(m, b, h, c.bf16).read(0, 1, 1, width, nullptr, to);
      if (!c.bf16 && padded(width) == width) memcpy(to, (const float*)m.data + b * m.batch + h * m.head, sizeof(float) * width);
    };
    const bool live = !c.seen || c.seen[b];
    memset(value, 0, sizeof(float) * s.Vp);
    memset(x, 0, sizeof(float) * s.Kp);
    if (live) read(c.k, g, s.K, x), read(c.v, g, s.V, value);
    // The key's features relative to the larger of its logarithm and the state's; factors for the state
    if (s.map == EXPONENTIALS) logs(c.keys, set, x, key, true, y);
    else for (int f = 0; f < Fp; f += W) store(key + f, s.map == RELU ? vf{} : min_(vf{}, load(x + f)));
    if (s.map == EXPONENTIALS) for (int f = s.F; f < Fp; ++f) key[f] = 0;
    if (c.scale) memcpy(now, c.scale + item * s.F, sizeof(float) * s.F);
    vf most_seen = all(NONE);
    for (int f = 0; f < Fp; f += W) {
      vf old = c.scale ? max_(load(now + f), all(NONE)) : all(s.map == RELU ? 0 : NONE), log = load(key + f);
      vf top = live ? max_(log, old) : old;
      store(before + f, exp2_((old - top) * LOG2E)), store(now + f, top);
      vf e = exp2_((log - top) * LOG2E);
      e = log <= NONE ? vf{} : e;
      if (s.map != EXPONENTIALS) { vf above = max_(vf{}, load(x + f)); e = s.map == RELU ? above : e * (above + 1.0f); }
      store(key + f, live ? e : vf{});
    }
    for (int f = s.F; f < Fp; ++f) now[f] = NONE;
    for (int f = 0; f < Fp; f += W) {
      vf top = load(now + f);
      most_seen = max_(most_seen, top);
      store(query + f, top <= NONE ? all(-INFINITY) : top);
    }
    if (c.scale_after) memcpy(c.scale_after + item * s.F, query, sizeof(float) * s.F);
    const vf most_now = all(largest(most_seen));
    const float* S = c.sums ? c.sums + item * s.F * L : nullptr;
    float* A = c.sums_after + item * s.F * L;
    auto map_query = [&](int64_t h) {
      read(c.q, h, s.K, x);
      if (s.map == EXPONENTIALS) logs(c.queries, set, x, query, false, y);
      vf own = all(NONE), top = all(NONE);
      for (int f = s.F; f < Fp; ++f) (s.map == EXPONENTIALS ? query : x)[f] = NONE;
      if (s.map == ELU) {  // both terms relative to their largest, as above
        for (int f = 0; f < Fp; f += W) own = max_(own, min_(vf{}, load(x + f)));
        own = all(largest(own));
      }
      if (s.map != RELU)
        for (int f = 0; f < Fp; f += W) {
          vf from = load(now + f), log = s.map == ELU ? min_(vf{}, load(x + f)) - own : load(query + f);
          log += from <= NONE ? all(NONE) : from - most_now;
          store(query + f, log), top = max_(top, log);
        }
      const vf most = all(largest(top));
      for (int f = 0; f < Fp; f += W) {
        vf above = s.map == EXPONENTIALS ? vf{} : max_(vf{}, load(x + f));
        store(query + f, s.map == RELU ? above : exp2_((load(query + f) - most) * LOG2E) * (above + 1.0f));
      }
    };
    // Columns j.. of A = before S + key [v | 1], if they are not there yet, and of the query's sums over A
    auto columns = [&](auto n, int j, bool ready) {
      constexpr int N = decltype(n)::value;
      vf a[N] = {}, from[N];
      for (int i = 0; i < N; ++i) from[i] = load(value + j + i * W);
      for (int f = 0; f < s.F; ++f)
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) {
          const int64_t at = (int64_t)f * L + j + i * W;
          vf now_at;
          if (ready) now_at = load(A + at);
          else {
            now_at = from[i] * key[f];
            if (S) now_at += load(S + at) * before[f];
            store(A + at, now_at);
          }
          a[i] += now_at * query[f];
        }
      for (int i = 0; i < N; ++i) store(result + j + i * W, a[i]);
    };
    for (int64_t r = 0; r < repeats; ++r) {
      const int64_t h = g * repeats + r;
      map_query(h);
      int j = 0;
      for (; j + 4 * W <= s.V; j += 4 * W) columns(Int<4>(), j, r > 0);
      for (; j + W <= s.V; j += W) columns(Int<1>(), j, r > 0);
      for (; j < s.V; ++j) {
        result[j] = 0;
        for (int f = 0; f < s.F; ++f) {
          const int64_t at = (int64_t)f * L + j;
          if (r == 0) A[at] = value[j] * key[f] + (S ? S[at] * before[f] : 0);
          result[j] += A[at] * query[f];
        }
      }
      if (r == 0) {  // denominators, the last column of A; `before` is not needed any more
        for (int f = 0; f < s.F; ++f) A[(int64_t)f * L + s.V] = before[f] = key[f] + (S ? S[(int64_t)f * L + s.V] * before[f] : 0);
        for (int f = s.F; f < Fp; ++f) before[f] = 0;
      }
      vf d = vf{};
      for (int f = 0; f < Fp; f += W) d += load(query + f) * load(before + f);
      const float under = sum(d), over = under == 0 ? 0 : 1 / under;
      for (int i = 0; i < s.Vp; i += W) store(result + i, load(result + i) * over);
      Strip(c.out, b, h, c.bf16).write(0, 1, s.V, {result, s.Vp});
    }
  }
  return 0;
}
}  // namespace lanesN
#endif
