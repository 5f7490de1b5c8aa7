"""Rows of the catalogue whose check is a count, an order or logic, as claims of our own, apart from its fences.

A line is `row verdict: claim -> part of the detail`; a conditional row stands here bare, and with what makes it true.
"""

import re

SHORT_FOR = {
    "MQA": "of: attention.mqa_step | sizes: b, n, h, k, v = k, d = h*k",
    "CACHE": "sizes: b, n, h, k, v",
    "SOFTMAX": "of: attention.softmax | sizes: N, D, M",
    "ONLINE": "of: attention.softmax_online | sizes: N, D, M",
    "SQUARE": "of: attention.quadratic | sizes: N, D, M | assume: M == D",
    "QUADRATIC": "of: attention.quadratic | sizes: N, D, M",
    "MAP": "of: attention.quadratic_map | sizes: N, D",
    "SHORT": "of: attention.quadratic_map_short | sizes: N, D",
    "RANDOM": "of: attention.random_features | sizes: N, D, M, R",
    "FASTER": "of: attention.random_features | sizes: N, D, M, R | unit: mac",
    "READ": "of: attention.read_state | sizes: M, R",
    "SEMIHARD": "given: ap, an, a in R | assume: a > 0; ap < an; an < ap + a",
}

COUNTED = """
35 holds: CACHE | assert: count(attention.mha_cache) == h*count(attention.mqa_cache) -> equal as polynomials
36 holds: MQA | assert: cost in O(b*d^2 + b*n*d) -> mac
37 refuted: CACHE, d = h*k | assert: b*d*k in O(b*d) -> b*k*d escapes along k=d=t, h=1 (ratio ~ t)
38 holds: MQA | assert: cost in Theta(cost(attention.mha_step)) -> b*h*k*d
39 refuted: MQA | assert: traffic in O(d^2 + b*d + b*n) -> escapes along
40 refuted: of: attention.mqa_cache | sizes: b, n, h, k, v | assert: count in O(b*n) -> b*n*k escapes along k=t
41 refuted: of: attention.mha_cache | sizes: b, n, h, k, v | assert: count in O(b*h*n) -> b*n*h*k escapes along k=t
42 refuted: MQA | assert: traffic in O(d^2 + b*d + b*n*k) -> h <= k, or kernel: fused
42 holds: MQA | assume: h <= k | assert: traffic in O(d^2 + b*d + b*n*k) -> 6*b*n*h
42 holds: MQA | kernel: fused | assert: traffic in O(d^2 + b*d + b*n*k) -> traffic =
43 holds: CACHE | assert: count(attention.mha_cache) == h*count(attention.mqa_cache) -> equal as polynomials
71 refuted: of: attention.read_state | sizes: N, M, R | assert: cost in Theta(N) -> escapes along
72 refuted: SOFTMAX | assert: cost in O(N^2*D) -> N^2*M escapes along M=t (ratio ~ t); holds assuming M <= D
72 holds: SOFTMAX | assume: M <= D | assert: cost in O(N^2*D) -> N^2*D + N^2*M mac
73 holds: SOFTMAX | assert: cost in O(N^2*max(D, M)) -> N^2*D + N^2*M mac
74 refuted: SOFTMAX | assert: peak in O(N^2) -> 2*N*D escapes along D=t
75 holds: SOFTMAX | assert: peak in O(max(N^2, N*D, N*M)) -> peak = max(
76 refuted: ONLINE | assert: peak in Omega(N^2) -> N^2 of the bound escapes along N=t
76 holds: ONLINE | assert: peak in O(N*(D + M)) -> peak =
78 refuted: SHORT | assert: cost in Theta(N*D^2) -> N*D^2 of the bound escapes along D=t
78 holds: SHORT | assert: cost in O(N*D^2) -> elementwise
78 holds: MAP | assert: cost in Theta(N*D^2) -> elementwise
79 refuted: QUADRATIC | assert: cost in O(N*D^2) -> 2*N*D^2*M escapes along M=t
80 holds: SQUARE | assert: cost in O(N*D^3) -> 2*N*D^2*M +
81 refuted: SQUARE | assert: peak in O(N*D) -> escapes along
81 refuted: SQUARE | assert: peak in O(N*D^2) -> D^2*M escapes along
82 holds: SQUARE | assert: peak in O(max(N*D^2, D^3)) -> peak =
83 refuted: SQUARE | assert: peak in O(max(N*D, D^3)) -> memory: streamed
83 holds: SQUARE | memory: streamed | assert: peak in O(max(N*D, D^3)) -> peak =
84 refuted: SQUARE | assert: cost in Omega(cost(attention.softmax)) -> holds assuming N <= D^2
84 holds: SQUARE; N <= D^2 | assert: cost in Omega(cost(attention.softmax))
84 refuted: SQUARE | assert: cost in O(cost(attention.softmax)) -> D^2 <= N
84 holds: SQUARE; N >= D^2 | assert: cost in O(cost(attention.softmax))
86 holds: RANDOM | assume: D <= 64; M <= 64; R <= 64 | assert: cost in Theta(N) -> mac
86 holds: RANDOM | assume: D <= 64; M <= 64; R <= 64 | assert: peak in Theta(N) -> peak =
108 refuted: RANDOM | assert: cost in O(N*R*M) -> 2*N*D*R escapes along D=t
109 holds: RANDOM | assert: cost in O(N*R*(D + M)) -> 4*N*M*R + 2*N*D*R + 2*N*R mac
110 holds: of: attention.project | sizes: N, D, R | assert: cost in O(N*D*R) -> N*D*R mac
111 refuted: of: attention.scale_features | sizes: R | assert: cost in O(1) -> 2*R escapes along R=t
112 holds: sizes: N, R, M | assert: N*R*M + N*R + N*M in O(N*R*M) -> N*R <= N*R*M
113 holds: RANDOM | assume: R == D; M <= D | assert: cost in O(N*D^2) -> mac
113 holds: RANDOM | assume: R <= 256; M <= D | assert: cost in O(N*D) -> mac
114 holds: FASTER | assume: N*(D + M) > R*(4*M + 2*D + 2) | assert: cost < cost(attention.softmax) -> times a monomial
114 holds: FASTER | assume: M == D; N > 4*R | assert: cost < cost(attention.softmax) -> put in
114 refuted: FASTER | assume: M == D; N > 2*R | assert: cost < cost(attention.softmax) -> N=3 D=1 M=1 R=1: 24 >= 18
115 refuted: READ | assert: cost in O(1) -> 2*M*R escapes along
115 holds: READ | assert: cost in Theta(R*M) -> mac
115 holds: READ | assume: M <= 64; R <= 64 | assert: cost in O(1) -> mac
116 holds: of: attention.draw_directions | sizes: D, R | assert: cost in O(R*D) -> elementwise
117 refuted: SOFTMAX | assert: cost in O(N^2*D) -> holds assuming M <= D
124 holds: of: attention.causal | sizes: N, D, M, R | assert: cost in O(N*R*(D + M)) -> mac
125 holds: of: attention.random_map | sizes: N, D, R | assert: cost in Theta(N*D*count(attention.fourier_features))
125 refuted: MAP | assert: cost in Theta(N*D*count(attention.ordered_quadratic_features)) -> escapes along D=t
125 holds: MAP | assert: cost in O(N*D*count(attention.ordered_quadratic_features))
131 holds: of: facenet.nn1_rows | assert: count == 22 -> 22
131 refuted: of: facenet.nn1_layers | assert: count == 22 -> 14
132 holds: of: facenet.nn1 | assert: params == 140e6 within 1% -> 140025664, 0.02% off
132 holds: of: facenet.nn1 | unit: mac | assert: cost == 1.6e9 within 1% -> 1605944064
133 refuted: of: facenet.nn1 | assert: params == 10e6 within 10% -> 140025664
134 refuted: of: facenet.nn2 | assert: params == 22e6 within 10% -> % off
136 holds: of: facenet.nn2 | assert: params == 7.5e6 within 1% -> % off
136 holds: of: facenet.nn2 | unit: mac | assert: cost == 1.6e9 within 2% -> % off
138 holds: assert: params(facenet.nn1) == 20*params(facenet.nn2) within 10%
140 refuted: assert: params(facenet.nns1) < params(resnet50.v1) -> >=
141 refuted: of: facenet.nn3 | unit: mac | assert: cost == 1e9 within 10% -> % off
141 holds: unit: mac | assert: 5e8 <= cost(facenet.nn3) <= 1.6e9
142 holds: of: resnet50.v1 | assert: params == 25.6e6 within 1% -> 25557032, 0.17% off
143 refuted: of: resnet50.v1 | unit: mac | assert: cost == 4.1e9 within 1% -> 3857973248, 5.9% off (v1.5: 4089184256)
144 holds: of: resnet50.v1 | unit: mac | assert: cost == 3.8e9 within 2% -> 3857973248, 1.53% off
144 holds: unit: mac | assert: 3.8e9 <= cost(resnet50.v1) < cost(resnet50.v1_5) <= 4.1e9
147 refuted: of: facenet.triplets | sizes: P, K | assume: P >= 2; K >= 2 | assert: count in Theta((P*K)^3) -> P=K=t
147 holds: of: facenet.triplets | sizes: P, K | assert: count in O((P*K)^3)
147 holds: of: facenet.triplets | sizes: P, K | assert: count == P*K*(K - 1)*(P*K - K)
"""

LOGICAL = """
11 refuted: given: g in R | assume: 1 >= 1 + g*1 | assert: 0 >= 1 + g*(-1) -> g=0: 0 < 1
45 holds: given: s in R^n | assume: min(s) > 0 | assert: sum(s) != 0 -> for every n (signs)
46 refuted: given: s in R^n | assume: sum(s) != 0 | assert: min(s) > 0 -> n=1 s=(-1): -1 <= 0; holds assuming s > 0
49 holds: given: p, q in R^D | assume: min(p) >= 0; min(q) >= 0 | assert: dot(p, q) >= 0 -> for every D (signs)
150 holds: SEMIHARD | assert: 0 < max(ap - an + a, 0) < a -> for all values (signs)
151 refuted: SEMIHARD | assert: an < ap -> ap=0 an=1 a=2: 1 >= 0
152 holds: SEMIHARD | assert: an < ap + a -> for all values (signs)
153 refuted: SEMIHARD | assert: max(ap - an + a, 0) == 0 -> ap=0 an=1 a=2: 1 != 0
154 holds: given: ap, an, hard, a in R | assume: a > 0; ap < an; an < ap + a; hard <= ap | loss(n) = max(ap - n + a, 0)\
 | assert: 0 < loss(an) < loss(hard) -> for all values (z3)
156 refuted: given: length in R | assume: length == 1 | assert: length == 0 -> 1 != 0
156 holds: given: a in R | assume: a > 0 | assert: max(0 - 0 + a, 0) == a -> for all values (normal form)
"""


def rows(table: str) -> list[tuple[int, str, str, str]]:
    """Row, verdict, text of the claim, and the part of the detail that must be there."""
    found = []
    for line in table.strip().splitlines():
        head, _, rest = line.partition(": ")
        text, _, part = rest.partition(" -> ")
        text = re.sub(r"^[A-Z]+\b", lambda short: SHORT_FOR[short.group()], text)
        found.append((int(head.split()[0]), head.split()[1], text.replace(" | ", "\n"), part))
    return found
