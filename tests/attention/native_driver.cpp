// Runs the kernel of linear attention over many calls, for sanitizers: every buffer is an allocation of its own and of no
// more than its size; rows lie apart, in any order of axes, and what lies between them must stay as it is; outputs and
// masked keys are NaN before the call; every number of an output must be finite after it.
#include "../../likewise/attention/native/kernel.cpp"

#include <cstdio>
#include <memory>
#include <vector>

static uint64_t state = 1;
static uint64_t draw() { return state = state * 6364136223846793005ull + 1442695040888963407ull, state >> 33; }
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
template <class T> T one_of(std::initializer_list<T> choices) { return choices.begin()[below((int64_t)choices.size())]; }
static float normal() { float x = 0; for (int i = 0; i < 4; ++i) x += (float)(draw() % 65536) / 65536.0f - 0.5f; return x * 1.7f; }
static const uint32_t NAN32 = 0x7fc00000, GAP32 = 0x12345678;
static const uint16_t NAN16 = 0x7fc0, GAP16 = 0x1234;

struct Tensor {  // numbers of one matrix of a call
  int64_t batches, heads, rows, width;
  bool bf16;
  std::vector<char> bytes;
  Matrix m;
  Tensor(int64_t batches, int64_t heads, int64_t rows, int64_t width, bool bf16) : batches(batches), heads(heads), rows(rows), width(width), bf16(bf16) {
    int64_t gap = one_of<int64_t>({0, 0, 1, 5}), wide = width + gap;
    bool heads_last = below(2);  // (B, T, H, K) in memory
    m.row = heads_last ? heads * wide : wide, m.head = heads_last ? wide : rows * wide, m.batch = heads * rows * wide;
    int64_t count = batches * heads * rows * wide - gap;  // nothing follows the last row
    bytes.resize((size_t)count * size());
    bytes.shrink_to_fit();
    m.data = bytes.data();
    for (int64_t i = 0; i < count; ++i) put(i, true, 0);
  }
  size_t size() const { return bf16 ? 2 : 4; }
  int64_t at(int64_t b, int64_t h, int64_t t, int64_t j) const { return b * m.batch + h * m.head + t * m.row + j; }
  void put(int64_t i, bool gap, float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    uint16_t narrow = gap ? GAP16 : x != x ? NAN16 : (uint16_t)(u >> 16);
    u = gap ? GAP32 : x != x ? NAN32 : u;
    memcpy(m.data + i * (int64_t)size(), bf16 ? (void*)&narrow : (void*)&u, size());
  }
  float get(int64_t i) const {
    uint32_t u = 0;
    if (bf16) { uint16_t narrow; memcpy(&narrow, m.data + i * 2, 2); u = (uint32_t)narrow << 16; } else memcpy(&u, m.data + i * 4, 4);
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
  template <class F> void each(F f) {
    for (int64_t b = 0; b < batches; ++b) for (int64_t h = 0; h < heads; ++h) for (int64_t t = 0; t < rows; ++t) for (int64_t j = 0; j < width; ++j) f(b, h, t, j, at(b, h, t, j));
  }
  void fill(float size, float offset) { each([&](int64_t, int64_t, int64_t, int64_t, int64_t i) { put(i, false, normal() * size + offset); }); }
  void poison() { each([&](int64_t, int64_t, int64_t, int64_t, int64_t i) { put(i, false, NAN); }); }
  void hide(const std::vector<uint8_t>& seen) { each([&](int64_t b, int64_t, int64_t t, int64_t, int64_t i) { if (!seen[b * rows + t]) put(i, false, NAN); }); }
  bool written() {  // everywhere finite, and nowhere else
    std::vector<uint8_t> inside(bytes.size() / size(), 0);
    bool right = true;
    each([&](int64_t, int64_t, int64_t, int64_t, int64_t i) { inside[i] = 1, right = right && std::isfinite(get(i)); });
    for (size_t i = 0; i < inside.size(); ++i) {
      uint32_t u = 0;
      memcpy(&u, m.data + i * size(), size());
      right = right && (inside[i] || u == (bf16 ? GAP16 : GAP32));
    }
    return right;
  }
};

static bool finite(const std::vector<float>& x, bool scale) {
  for (float y : x) if (!std::isfinite(y) && !(scale && y == -INFINITY)) return false;
  return true;
}
static std::vector<float> numbers(int64_t count, float size) {
  std::vector<float> x(count);
  for (auto& y : x) y = normal() * size;
  return x;
}

static bool run_one() {
  const int64_t G = one_of<int64_t>({1, 1, 2, 3}), H = G * one_of<int64_t>({1, 1, 2, 3}), B = one_of<int64_t>({1, 1, 2});
  const int64_t K = one_of<int64_t>({1, 5, 8, 16, 33, 64}), V = one_of<int64_t>({1, 3, 8, 16, 31, 64}), map = below(3);
  const int64_t sets = map == EXPONENTIALS && G > 1 ? one_of<int64_t>({1, G}) : 1, F = map == EXPONENTIALS ? one_of<int64_t>({1, 7, 16, 40}) : K;
  const int64_t kind = below(4);  // attend and differentiate; the same, packed; after a state; a step
  int64_t S = one_of<int64_t>({1, 2, 63, 64, 65, 130, 200}), T = S, threads = one_of<int64_t>({1, 2, 3, 5});
  if (kind < 2 && below(3) == 0) T = 1 + below(S);
  if (kind == 0 && below(8) == 0) S = T = 1100, threads = 2;  // spans of one head
  if (kind == 3) S = T = 1;
  const bool causal = kind > 1 || below(2), bf16 = below(3) == 0;
  if (kind == 0 && !causal && below(4) == 0) T = S + below(70);
  const int64_t within = map == EXPONENTIALS && causal && kind != 1 && kind != 3 && T <= S && below(2) ? one_of<int64_t>({1, 2, 17, 64, 70, 300}) : 0, strict = within && kind == 0 && below(2);
  const int64_t slices = std::max<int64_t>(1, std::min(H / G, threads / (B * G)));
  const bool wide = bf16 && slices > 1;
  const float size = one_of<float>({0.0f, 1.0f, 1.0f, 30.0f, 300.0f}), offset = one_of<float>({0.0f, 0.0f, -100.0f, 100.0f});
  Tensor q(B, H, T, K, bf16), k(B, G, S, K, bf16), v(B, G, S, V, bf16), out(B, H, T, V, bf16), grad(B, H, T, V, bf16);
  Tensor dq(B, H, T, K, bf16), dk(B, G * slices, S, K, bf16 && !wide), dv(B, G * slices, S, V, bf16 && !wide);
  q.fill(size, offset), k.fill(size, offset), v.fill(1, 0), grad.fill(1, 0);
  for (Tensor* x : {&out, &dq, &dk, &dv}) x->poison();
  std::vector<uint8_t> seen(B * S, 1), begins(B * S, 0);
  const bool masked = below(2), packed = kind == 1;
  for (auto& x : seen) x = below(3) > 0;
  if (masked) k.hide(seen), v.hide(seen);
  for (int64_t b = 0; b < B; ++b) { for (int64_t t = 0; t < S; ++t) begins[b * S + t] = below(20) == 0; begins[b * S] = 1; }
  auto side = [&] { return std::vector<std::vector<float>>{numbers(sets * F * K, 0.5f), numbers(sets * F, 1), numbers(sets * K, 0.3f), numbers(sets * K, 0.3f), numbers(sets * K, 0)}; };
  auto of_queries = side(), of_keys = side();
  for (auto* s : {&of_queries, &of_keys}) for (auto& x : (*s)[4]) x = 0.5f;
  auto as_side = [](std::vector<std::vector<float>>& s) { return Side{s[0].data(), s[1].data(), s[2].data(), s[3].data(), s[4].data()}; };
  const bool before = kind > 1 && below(2), after = kind > 1;
  auto sums = numbers(B * G * F * (V + 1), 1), scale = numbers(B * G * F, map == ELU ? 0.0f : 3.0f);
  for (int64_t i = 0; i < B * G * F; ++i) { sums[i * (V + 1) + V] = 1; if (below(5) == 0) { scale[i] = -INFINITY; for (int64_t j = 0; j <= V; ++j) sums[i * (V + 1) + j] = 0; } }
  std::vector<float> sums_after(B * G * F * (V + 1), NAN), scale_after(B * G * F, NAN);
  std::vector<float> log_sums(within ? B * H * T : 0, NAN);
  Call c;
  memset((void*)&c, 0, sizeof c);
  c.q = q.m, c.k = k.m, c.v = v.m, c.out = out.m;
  c.seen = masked ? seen.data() : nullptr, c.begins = packed ? begins.data() : nullptr;
  c.sums = before ? sums.data() : nullptr, c.scale = before && map != RELU ? scale.data() : nullptr;
  c.sums_after = after ? sums_after.data() : nullptr, c.scale_after = after && map != RELU ? scale_after.data() : nullptr;
  if (map == EXPONENTIALS) c.queries = as_side(of_queries), c.keys = as_side(of_keys);
  c.B = B, c.H = H, c.G = G, c.T = T, c.S = S, c.K = K, c.F = F, c.V = V, c.sets = sets, c.slices = slices;
  c.map = map, c.causal = causal, c.bf16 = bf16, c.wide = wide, c.threads = threads;
  c.within = within, c.strict = strict, c.log_sums = log_sums.data(), c.kernel_scale = 0.3;
  bool right = (kind == 3 ? likewise_step(&c) : likewise_attend(&c)) == 0 && out.written();
  right = right && finite(log_sums, true);
  if (after) right = right && finite(sums_after, false) && (map == RELU || finite(scale_after, true));
  if (kind < 2) {
    c.grad = grad.m, c.dq = dq.m, c.dk = dk.m, c.dv = dv.m;
    right = likewise_differentiate(&c) == 0 && right && dk.written() && dv.written() && dq.written();
  }
  if (!right) printf("kind %d map %d causal %d bf16 %d B %d H %d G %d T %d S %d K %d F %d V %d masked %d size %g offset %g within %d threads %d: wrong\n", (int)kind, (int)map, causal, bf16, (int)B, (int)H, (int)G, (int)T, (int)S, (int)K, (int)F, (int)V, masked, size, offset, (int)within, (int)threads);
  return right;
}

int main(int, char** arguments) {
  const int count = atoi(arguments[1]);
  int wrong = 0, sets = 0;
  for (int lanes : {4, 8, 16}) {
    if (likewise_lanes(lanes) != lanes) continue;
    ++sets;
    for (int i = 0; i < count; ++i) state = 1 + i, wrong += !run_one();
  }
  printf("%d calls in %d instruction sets, %d wrong\n", count * sets, sets, wrong);
  return wrong > 0;
}
