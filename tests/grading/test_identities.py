"""Sentences, Markdown and code around an answer, and identities of floors, sums and matrices; each with near misses."""

import time

import pytest

from likewise.grading import grade

SQUARE, RIDGE = "A, B in R^(n, n); u, v in R^n", "X in R^(n, d); y in R^n; lambda > 0"
ENTRIES = "A, B in R^(n, n); x, y in R^n"
EQUAL = [
    # Markdown
    ("**9,472** parameters", "9472", None),
    ("Linear attention has **O(N)** memory in the sequence length.", "O(N)", None),
    ("She pays **\\$12.5**.", r"\$12.50", None),
    ("So it is a **Tuesday**.", "Tuesday", None),
    ("n**2 * d**2", "n^2 d^2", None),
    # sentences
    ("In total there are 1,048,576 entries.", "1048576", None),
    ("There are $\\frac{n!}{(n-2)!}$ ordered pairs.", "$n(n-1)$", "n in N"),
    ("We need $\\lfloor (T + C - 1)/C \\rfloor$ chunks.", r"$\lceil T/C \rceil$", "T, C in N; C > 0"),
    ("It takes 2.5 hours.", "150 minutes", None),
    ("Total = $2D(2D + F)$", "$4D^2 + 2DF$", None),
    ("Differentiating, $f'(x) = 3x^2 - 4$.", "$3x^2 - 4$", None),
    ("Simplifying gives $x + 1$.", "$1 + x$", None),
    # choices with their text
    ("42", "(B) 42", None),
    ("\\boxed{\\frac{84}{2}}", "B. 42", None),
    (r"\boxed{\textbf{(C)}\ 42}", "C", None),
    (r"\boxed{\textbf{(C) } 42}", "42", None),
    ("(a) 3", "3", None),
    # a derivative, limit or integral whose value is stated
    (r"\frac{\partial L}{\partial z_i} = p_i - y_i", "p_i - y_i", None),
    (r"$\nabla_W L = \frac{2}{n} X^T(XW - Y)$", "$2X^T(XW-Y)/n$", None),
    (r"$\frac{dy}{dx} = 3x^2$", "3x^2", None),
    (r"$$\int_0^1 x^2 \, dx = \frac{1}{3}$$", "1/3", None),
    (r"Thus $\lim_{x \to 0} \frac{\sin x}{x} = 1$.", "1", None),
    (r"$\mathbf{w}^* = (X^\top X)^{-1}X^\top y$", "(X^TX)^{-1}X^Ty", None),
    # units and counted nouns after a formula
    (r"$3.2\,\mu s$", "3200 ns", None),
    (r"$3.2\ \mu\text{m}$", "0.0032 mm", None),
    (r"$7 \times 10^9$ parameters", "7000000000", None),
    # letters
    ("P(P-1)", "$P^2 - P$", None),
    ("$P(P-1)/2$", r"$\binom{P}{2}$", None),
    (r"\boxed{C_{\text{out}}(k^2 C_{\text{in}} + 1)}", "$k^2 C_{in} C_{out} + C_{out}$", None),
    (r"$m_t = m + (1-\beta)(g - m)$", r"$\beta m + (1-\beta) g$", None),
    ("2!3!", "12", None),
    (r"$\binom{5}{2} = \frac{5!}{2!\,3!} = 10$", "10", None),
    # orders
    ("O(N) * O(N^2)", "O(N^3)", None),
    ("$O(N) + O(N^2)$", "$O(N^2)$", None),
    (r"$N \cdot O(\log N)$", r"$O(N \log N)$", None),
    # floors and sums
    (r"\lfloor x + 1 \rfloor", r"\lfloor x \rfloor + 1", "x in R"),
    (r"-\lfloor -x \rfloor", r"\lceil x \rceil", "x in R"),
    (r"\lfloor n/2 \rfloor + \lceil n/2 \rceil", "n", "n in N"),
    (r"\lceil x - n \rceil", r"\lceil x \rceil - n", "x in R; n in N"),
    (r"\sum_{k=0}^n \binom{n}{k}", "2^n", "n in N"),
    (r"\sum_{k=0}^{n} \binom{n}{k} x^k y^{n-k}", "(x+y)^n", "n in N; x, y > 0"),
    (r"\sum_{j=0}^{n} \binom{n}{j} 2^j", "3^n", "n in N"),
    # matrices
    (r"\det(cA)", r"c^n \det A", "A in R^(n, n); c in R"),
    (r"\det(-A)", r"-\det A", "A in R^(3, 3)"),
    (r"\|A\|_F^2", r"\operatorname{tr}(A^T A)", "A in R^(m, n)"),
    (r"\|A\|_F^2", r"\operatorname{tr}(A A^T)", None),
    (r"\operatorname{diag}(a, b)", r"\begin{pmatrix} a & 0 \\ 0 & b \end{pmatrix}", None),
    (r"\sum_{i=1}^n \sum_{j=1}^n x_i A_{ij} x_j", "x^T A x", ENTRIES),
    (r"\sum_{i=1}^n \sum_{j=1}^n A_{ij} B_{ji}", r"\operatorname{tr}(AB)", ENTRIES),
    (r"\sum_{i,j} A_{ij}^2", r"\|A\|_F^2", ENTRIES),
    (r"\sum_{i=1}^n x_i y_i", "x^T y", ENTRIES),
    (r"A^{-1} - \frac{A^{-1}uv^TA^{-1}}{1 + v^TA^{-1}u}", "(A + uv^T)^{-1}", SQUARE),
    (r"X^T(XX^T + \lambda I)^{-1}y", r"(X^TX + \lambda I)^{-1}X^Ty", RIDGE),
    (r"A^{-1} - A^{-1}(A^{-1} + B^{-1})^{-1}A^{-1}", "(A + B)^{-1}", SQUARE),
    ("(I - A)^{-1}", "I + A(I - A)^{-1}", SQUARE),
    (r"u^T (A A^T + I)^{-1} v", r"v^T (A A^T + I)^{-1} u", SQUARE),
    (r"\operatorname{tr}(A (B^T B + I)^{-1})", r"\operatorname{tr}((B^T B + I)^{-1} A^T)", SQUARE),
    ("A @ B", "AB", SQUARE),
    ("softmax(Q @ K.T / sqrt(d)) @ V", r"\text{softmax}\left(\frac{QK^T}{\sqrt{d}}\right)V", None),
]
NEAR_MISSES = [
    ("**9,427** parameters", "9472", None),
    ("The answer is **not** 42.", "42", None),
    ("It is not a **Tuesday**.", "Tuesday", None),
    ("It is the day before **Tuesday**.", "Tuesday", None),
    ("Softmax attention has **O(N)** memory only for one query.", "O(N)", None),
    ("She pays less than **$12**.", r"\$12", None),
    ("Multiply the result by **12**.", "12", None),
    ("2**3 * 4**2", "3 * 4", None),
    ("There are 42 more apples than pears.", "42", None),
    ("There are 42 dozen apples.", "42", None),
    ("There are not 42 apples.", "42", None),
    ("There are at least 42 apples.", "42", None),
    ("There are 42 pairs of shoes.", "42", None),
    ("If there are 42 apples.", "42", None),
    ("There are 42 apples or 41.", "42", None),
    ("There are 42 apples and 3 pears.", "42", None),
    ("There were 42 apples before.", "42", None),
    ("We need 42 fewer chunks.", "42", None),
    ("We need 42 to be prime.", "42", None),
    ("It takes 2.5 hours more.", "150 minutes", None),
    ("It takes 2.5 minutes.", "150 minutes", None),
    ("Half of the total = $12$", "12", None),
    ("Guess = $12$", "12", None),
    ("Not simplifying, $x$.", "x", None),
    ("Doubling, $x$.", "2x", None),
    ("41", "(B) 42", None),
    ("(B) 41", "(B) 42", None),
    ("C", "(B) 42", None),
    (r"\sin[2x)", r"2\sin x \cos x", None),
    ("The square of the number is $17$.", "17", None),
    (r"\boxed{\textbf{(D)}\ 42}", "C", None),
    (r"\boxed{\textbf{(C) } 41}", "42", None),
    ("(a) 4", "3", None),
    ("(A) 3", "(B) 3", None),
    ("(a) 3", "(b) 3", None),
    ("A. 3", "(B) 3", None),
    (r"\textbf{(A)}\ 3", r"\textbf{(B)}\ 3", None),
    ("(A) 3", "(A) 4", None),
    ("(a) 3 (b) 4", "3", None),
    ("(a) 3, (b) 4", "3", None),
    (r"\frac{\partial L}{\partial z_i} = y_i - p_i", "p_i - y_i", None),
    (r"\frac{\partial L}{\partial z_i} = p_i - y_i", r"\frac{\partial L}{\partial z_j} = p_i - y_i", None),
    (r"\frac{\partial L}{\partial z_i} = 2 \frac{\partial L}{\partial z_j}", "2", None),
    (r"2 \frac{dy}{dx} = 3x^2", "3x^2", None),
    (r"\int_0^1 x^2 \, dx = \frac{1}{3} + C", "1/3", None),
    (r"\int_0^1 x^2 \, dx = \frac{1}{3}", r"\int_0^2 x^2 \, dx = \frac{1}{3}", None),
    (r"\int_0^1 x^2 dx + 1 = \frac{1}{3}", "1/3", None),
    (r"\int_0^1 x^2 dx = \int_0^1 y^2 dy", r"\int_0^1 y^2 dy + 1", None),
    (r"$\mathbf{w}^* = (X X^\top)^{-1}X^\top y$", "(X^TX)^{-1}X^Ty", None),
    (r"$3.2\,\mu s$", "3.2 ms", None),
    (r"$7 \times 10^9$ parameters", "7000000", None),
    (r"$7$ parameters too many", "7", None),
    (r"$7$ or more parameters", "7", None),
    (r"$\mathbf{1}^T x$", "x", None),
    ("P(P+1)", "$P^2 - P$", None),
    ("P(A)P(B)", "P(A, B)", None),
    ("P(X = 1)", "P", None),
    (r"C_{\text{out}}(k^2 C_{\text{in}} + 1)", "$k^2 C_{in} C_{out} + C_{in}$", None),
    (r"$m_t = m_t + (1-\beta)(g - m)$", r"$m + (1-\beta)(g - m)$", None),
    ("2!3!", "6!", None),
    ("O(N) * O(N^2)", "O(N^2)", None),
    ("$O(N) + O(N^2)$", "O(N)", None),
    (r"$N + O(\log N)$", r"$O(N \log N)$", None),
    (r"\lfloor x + y \rfloor", r"\lfloor x \rfloor + y", "x, y in R"),
    (r"\lfloor x + 1/2 \rfloor", r"\lfloor x \rfloor", "x in R"),
    (r"-\lfloor x \rfloor", r"\lceil x \rceil", "x in R"),
    (r"\lfloor 2x \rfloor", r"2\lfloor x \rfloor", "x in R"),
    (r"\lfloor n/2 \rfloor + \lfloor n/2 \rfloor", "n", "n in N"),
    (r"\lfloor n/3 \rfloor + \lceil n/3 \rceil", "n", "n in N"),
    (r"\lfloor n/3 \rfloor + \lfloor (n+1)/3 \rfloor", "n", "n in N"),
    (r"\lfloor x/2 \rfloor + \lceil x/2 \rceil", "x", "x in R"),
    (r"\sum_{k=1}^n \binom{n}{k}", "2^n", "n in N"),
    (r"\sum_{k=0}^{n-1} \binom{n}{k}", "2^n", "n in N"),
    (r"\sum_{k=0}^n \binom{n+1}{k}", "2^{n+1}", "n in N"),
    (r"\sum_{k=0}^n \binom{n}{k} k", "2^n", "n in N"),
    (r"\sum_{k=0}^{n} \binom{n}{k} x^k y^{n-k}", "(x+y)^{n+1}", "n in N; x, y > 0"),
    (r"\det(cA)", r"c \det A", "A in R^(n, n); c in R; n in N"),
    (r"\det(cA)", r"c^m \det A", "A in R^(n, n); c in R; m in N"),
    (r"\det(-A)", r"\det A", "A in R^(3, 3)"),
    (r"\det(A + B)", r"\det A + \det B", SQUARE),
    (r"\|A\|_F^2", r"\operatorname{tr}(A A)", "A in R^(n, n)"),
    (r"\|A\|_F", r"\operatorname{tr}(A^T A)", "A in R^(n, n)"),
    (r"\|A\|^2", r"\operatorname{tr}(A^T A)", "A in R^(n, n)"),
    (r"\operatorname{diag}(a, b)", r"\begin{pmatrix} 0 & a \\ b & 0 \end{pmatrix}", None),
    (r"\operatorname{diag}(a, b)", r"\begin{pmatrix} a & 0 & 0 \\ 0 & b & 0 \\ 0 & 0 & 1 \end{pmatrix}", None),
    (r"\sum_{i=1}^n \sum_{j=1}^n x_i A_{ij} y_j", "y^T A x", ENTRIES),
    (r"\sum_{i=1}^{n-1} \sum_{j=1}^n x_i A_{ij} x_j", "x^T A x", ENTRIES),
    (r"\sum_{i=2}^n x_i y_i", "x^T y", ENTRIES),
    (r"\sum_{i=1}^n x_i y_i", "x^T y", None),
    (r"\sum_{i=1}^n \sum_{j=1}^n A_{ij} B_{ij}", r"\operatorname{tr}(AB)", ENTRIES),
    (r"\sum_{i=1}^n A_{ii}^2", r"\|A\|_F^2", ENTRIES),
    (r"\sum_{i=1}^n \sum_{j=1}^n x_i A_{ii} x_j", "x^T A x", ENTRIES),
    (r"A^{-1} + \frac{A^{-1}uv^TA^{-1}}{1 + v^TA^{-1}u}", "(A + uv^T)^{-1}", SQUARE),
    (r"A^{-1} - \frac{A^{-1}vu^TA^{-1}}{1 + v^TA^{-1}u}", "(A + uv^T)^{-1}", SQUARE),
    (r"X(X^TX + \lambda I)^{-1}y", r"(X^TX + \lambda I)^{-1}X^Ty", RIDGE),
    (r"X^T(XX^T - \lambda I)^{-1}y", r"(X^TX + \lambda I)^{-1}X^Ty", RIDGE),
    (r"X^T(XX^T + 2\lambda I)^{-1}y", r"(X^TX + \lambda I)^{-1}X^Ty", RIDGE),
    (r"A^{-1} - A^{-1}(A^{-1} + B^{-1})^{-1}B^{-1}", "(A + B)^{-1}", SQUARE),
    ("A^{-1} + B^{-1}", "(A + B)^{-1}", SQUARE),
    (r"u^T (A + I)^{-1} v", r"v^T (A + I)^{-1} u", SQUARE),
    (r"\operatorname{tr}(A (B + I)^{-1})", r"\operatorname{tr}((B + I)^{-1} A^T)", SQUARE),
    ("(I - A)^{-1}", "I + A(I + A)^{-1}", SQUARE),
    ("B @ A", "AB", SQUARE),
    ("A.T @ B", "AB", SQUARE),
    ("softmax(Q @ K / sqrt(d)) @ V", r"\text{softmax}\left(\frac{QK^T}{\sqrt{d}}\right)V", None),
]
DEPENDS = [
    ("$BGT^2$", "$BHT^2$", "G = H"),
    ("$d_k$", r"$\frac{D}{H}$", "D = H*d_{k}"),
    (r"\det(cA)", r"c^n \det A", "n"),
    ("128 multiply-adds", "128", "multiply-adds"),
    ("175B parameters", "175000000000", "billion"),
]


@pytest.mark.parametrize("row", EQUAL, ids=lambda row: row[0])
def test_an_identity_is_equal_in_both_orders(row):
    answer, key, given = row
    found = [grade(answer, key, given), grade(key, answer, given)]
    assert [each.verdict for each in found] == ["equal", "equal"], found


@pytest.mark.parametrize("row", NEAR_MISSES, ids=lambda row: row[0])
def test_a_near_miss_of_an_identity_is_never_equal(row):
    answer, key, given = row
    found = [grade(answer, key, given), grade(key, answer, given)]
    assert "equal" not in [each.verdict for each in found], found
    assert found[0].verdict == found[1].verdict


@pytest.mark.parametrize("row", DEPENDS, ids=lambda row: row[0])
def test_sizes_that_may_be_the_same_are_a_condition_in_both_orders(row):
    answer, key, said = row
    for found in (grade(answer, key), grade(key, answer)):
        assert found.verdict == "depends", found
        assert said in found.condition


@pytest.mark.parametrize(
    ("answer", "key", "verdict"),
    [
        (r"\boxed{256 \text{ FLOPs}}, counting a multiply-add as two FLOPs", "128 MACs", "equal"),
        ("256 FLOPs (a multiply-add is 2 FLOPs)", "128 MACs", "equal"),
        ("$4N^2D$ FLOPs, where one MAC is 2 FLOPs", "$2N^2D$ MACs", "equal"),
        ("256 FLOPs, counting a multiply-add as one FLOP", "128 MACs", "different"),
        ("256 GFLOPs, counting a multiply-add as 2 FLOPs", "128 GMACs", "equal"),
        ("256 FLOPs, counting a multiply-add as 2 FLOPs", "256 FLOPs, counting a multiply-add as 1 FLOP", "different"),
        (r"$\log n$ where log is base 2", r"\log_2 n", "equal"),
        (r"$\log n$ (base 2)", r"\log_2 n", "equal"),
        (r"$\log n$ (natural log)", r"\ln n", "equal"),
        (r"$\log n$, where $\log$ is the natural logarithm", r"\ln n", "equal"),
        (r"$\log n$, where $\log$ is the natural logarithm", r"\log_2 n", "different"),
        (r"$\log n$ (base 10)", r"\log_2 n", "different"),
        (r"Using natural logarithms, $\log n$", r"$\log n$ (base 2)", "different"),
        ("1011 (base 2)", "1011", "undecided"),
        (r"$n \log n$, using 256 FLOPs where a MAC is 2 FLOPs", r"n \log_2 n", "undecided"),
        (r"$\log n$ where log is not base 2", r"\log_2 n", "undecided"),
        (r"$\log n$ (base 2)", r"\log n", "depends"),
    ],
)
def test_a_convention_that_an_answer_states_is_translated(answer: str, key: str, verdict: str) -> None:
    found = [grade(answer, key), grade(key, answer)]
    assert [each.verdict for each in found] == [verdict, verdict], found


def test_the_convention_of_the_key_decides_where_an_answer_states_another() -> None:
    assert (
        grade("256 FLOPs, counting a multiply-add as 2 FLOPs", "128 FLOPs", conventions={"flop": 1}).verdict == "equal"
    )
    assert (
        grade("128 FLOPs, counting a multiply-add as 2 FLOPs", "128 FLOPs", conventions={"flop": 1}).verdict != "equal"
    )
    assert grade(r"$\log n$ (base 2)", r"\log n", conventions={"log": 2}).verdict == "equal"
    assert grade(r"$\log n$ (base 2)", r"\log n", conventions={"log": "e"}).verdict == "different"


@pytest.mark.parametrize(
    "text",
    [
        r"\int " + "d" * 1_900, r"\int " + "d x" * 600, r"\frac{d" + "{}" * 900, "**a" * 60_000, "**" + "a " * 90_000,
        "@" * 1_900, "a" * 190_000 + " $x$", "a " * 90_000 + "= $x$", "P(" * 900, "(A) " * 450,
        r"\lim_{" + "x" * 1_900, "O(" * 90,
        r"\nabla" * 300, "x^* = " * 300, r"\textbf{(A)} " * 140,
        " " * 90_000 + "x (base 2) log", ", " * 90_000 + "x (natural log) log", "with the log is " * 9_000,
        "a MAC " * 30_000,
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_what_is_read_around_an_answer_takes_bounded_time(text: str) -> None:
    start = time.process_time()
    assert grade(text, "42").verdict != "equal"
    assert time.process_time() - start < 1
