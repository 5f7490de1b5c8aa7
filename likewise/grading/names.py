"""Names with a meaning: functions, laws, orders and Greek letters."""

from likewise.grading.spelling import SPELLED
from likewise.reading.expressions import HEADS

FUNCTIONS = {
    "exp", "log", "ln", "lg", "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh",
    "tanh", "max", "min", "gcd", "lcm", "det", "tr", "relu", "sigmoid", "sqrt", "sgn", "rank", "diag", "vec", "softmax",
}  # fmt: skip
ALIASES = {"Tr": "tr", "ReLU": "relu", "sign": "sgn"}
OPAQUE = HEADS | {"P", "Pr", "E", "Var", "Cov", "sim", "softmax", "Attention", "rank", "diag", "vec", "arg", "Re", "Im"}
GREEK_LETTERS = {*SPELLED.split("|"), "zeta", "iota", "upsilon", "Lambda", "Phi", "Psi", "Upsilon"}
ORDERS = {"O_tilde": "soft O", "O": "O", "Theta": "Theta", "Omega": "Omega", "o": "o"}
LAWS = {
    "N": "normal", "Normal": "normal", "normal": "normal", "Gaussian": "normal", "U": "uniform", "Uniform": "uniform",
    "Unif": "uniform", "Bernoulli": "bernoulli", "Bern": "bernoulli", "Ber": "bernoulli", "Binomial": "binomial",
    "Bin": "binomial", "B": "binomial", "Poisson": "poisson", "Poi": "poisson", "Exp": "exponential",
    "Exponential": "exponential", "Gamma": "gamma", "Beta": "beta", "Geometric": "geometric", "Geom": "geometric",
    "Geo": "geometric", "Multinomial": "multinomial", "Dirichlet": "dirichlet", "Dir": "dirichlet",
}  # fmt: skip
