"""Exact top-10 by FAISS, in the environment of the peers: the least of several times for each batch, and the answers.

Takes rows.npy, queries.npy and an output .npz; FAISS gets two threads and, beyond one query, the better setting.
"""

import sys
import time

import faiss
import numpy

K, BATCHES = 10, (1, 64, 1000)


def least(call, times: int) -> float:
    """The least of several times."""
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Measure, and write what was found."""
    rows, queries, out = numpy.load(sys.argv[1]), numpy.load(sys.argv[2]), sys.argv[3]
    faiss.omp_set_num_threads(2)
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    usual = faiss.cvar.distance_compute_blas_threshold
    seconds = {}
    for batch in BATCHES:
        some, best = queries[:batch], []
        for threshold in (usual, 1000) if batch > 1 else (usual,):
            faiss.cvar.distance_compute_blas_threshold = threshold
            best.append(least(lambda some=some: index.search(some, K), 9 if batch == 1 else 3))
        seconds[f"seconds_{batch}"] = numpy.array(best)
    _, found = index.search(queries[:64], K)
    numpy.savez(out, allow_pickle=False, found=found, version=numpy.array(faiss.__version__), **seconds)


main()
