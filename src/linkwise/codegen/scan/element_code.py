"""The fixed part of the CUDA source of scans: elements, and the scan of those of all runs.

The formulas of `sweeps/scan/element.py`, entry by entry. An element is A (36), then y (6) or
P (21), then J (21) of a Kalman element. A symmetric matrix is its upper triangle, row by row.
"""

from __future__ import annotations

from typing import Final

THREADS: Final = 128
"""Elements that one block scans."""

ELEMENTS: Final = r"""
struct Chain {
    long long runs;        /* runs of bodies, one thread each */
    long long room;        /* runs times the length of the longest */
    const int *start;      /* the first body of each run, and the end */
    const int *kind;       /* the class of each body */
    const int *q_at, *v_at;
    const T *table;        /* numbers in which bodies of a class differ */
    T *record;             /* what stages keep for later ones */
};

/* An entry that the parent of body k keeps. */
__device__ __forceinline__ T above(const Chain &chain, int k, int run, int slot)
{
    int begin = chain.start[run];
    if (k == begin) begin = chain.start[--run];
    return chain.record[slot * chain.room + (long long)(k - 1 - begin) * chain.runs + run];
}

__device__ __forceinline__ constexpr int up(int r, int c)
{
    return r <= c ? r * (11 - r) / 2 + c : c * (11 - c) / 2 + r;
}

/* L with L L* = a symmetric, positive semidefinite matrix; columns of vanishing pivots are zero. */
template <class M> __device__ __forceinline__ void root(const M &matrix, T (&L)[6][6])
{
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        T d = matrix[up(j, j)];
        const T least = 1e-15 * d;
#pragma unroll
        for (int m = 0; m < j; ++m) d -= L[j][m] * L[j][m];
        const T scale = d > least ? rsqrt(d) : 0.0;
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            if (i < j) { L[i][j] = 0.0; continue; }
            T e = matrix[up(i, j)];
#pragma unroll
            for (int m = 0; m < j; ++m) e -= L[i][m] * L[j][m];
            L[i][j] = e * scale;
        }
    }
}

/* The lower factor of I + B B*, with the reciprocals of its diagonal on it. */
__device__ __forceinline__ void factor(const T (&B)[6][6], T (&W)[6][6])
{
#pragma unroll
    for (int j = 0; j < 6; ++j)
#pragma unroll
        for (int i = j; i < 6; ++i) {
            T e = i == j ? 1.0 : 0.0;
#pragma unroll
            for (int m = 0; m < 6; ++m) e += B[i][m] * B[j][m];
#pragma unroll
            for (int m = 0; m < j; ++m) e -= W[i][m] * W[j][m];
            W[i][j] = i == j ? rsqrt(e) : e * W[j][j];
        }
}

/* x = W^-1 x, column by column. */
__device__ __forceinline__ void solve(const T (&W)[6][6], T (&x)[6][6])
{
#pragma unroll
    for (int c = 0; c < 6; ++c)
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            T e = x[i][c];
#pragma unroll
            for (int m = 0; m < i; ++m) e -= W[i][m] * x[m][c];
            x[i][c] = e * W[i][i];
        }
}

struct Affine {
    static const int SIZE = 42, STATE = 6;
    static __device__ __forceinline__ void nothing(T *x)
    {
#pragma unroll
        for (int i = 0; i < 42; ++i) x[i] = i < 36 && i % 7 == 0 ? 1.0 : 0.0;
    }
    /* The state y after an element. */
    static __device__ void state(T *y, const T *e)
    {
        T z[6];
#pragma unroll
        for (int r = 0; r < 6; ++r) {
            z[r] = e[36 + r];
#pragma unroll
            for (int c = 0; c < 6; ++c) z[r] += e[6 * r + c] * y[c];
        }
#pragma unroll
        for (int r = 0; r < 6; ++r) y[r] = z[r];
    }
    /* j after i; all is read before something is written, since the compiler keeps that order. */
    template <class In, class Out>
    static __device__ __forceinline__ void combine(const In &i, const In &j, const Out &o)
    {
        T first[42], then[42];
#pragma unroll
        for (int e = 0; e < 42; ++e) first[e] = i[e], then[e] = j[e];
#pragma unroll
        for (int r = 0; r < 6; ++r) {
            T y = then[36 + r];
#pragma unroll
            for (int c = 0; c < 6; ++c) {
                T e = 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) e += then[6 * r + m] * first[6 * m + c];
                o[6 * r + c] = e;
                y += then[6 * r + c] * first[36 + c];
            }
            o[36 + r] = y;
        }
    }
};

struct Kalman {
    static const int SIZE = 78, STATE = 21;
    static __device__ __forceinline__ void nothing(T *x)
    {
#pragma unroll
        for (int i = 0; i < 78; ++i) x[i] = i < 36 && i % 7 == 0 ? 1.0 : 0.0;
    }
    /* P = P + A (S^-1 + J)^-1 A*, with S = L L*: A L (I + L* J L)^-1 L* A*. */
    static __device__ __forceinline__ void carry(const T *S, const T *A, const T *J, T *P)
    {
        T L[6][6], W[6][6], B[6][6], Y[6][6];
        root(S, L);
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = 0; c < 6; ++c) {
                T e = 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) e += J[up(r, m)] * L[m][c];
                B[r][c] = e;
            }
#pragma unroll
        for (int j = 0; j < 6; ++j)
#pragma unroll
            for (int i = j; i < 6; ++i) {
                T e = i == j ? 1.0 : 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) e += L[m][i] * B[m][j];
#pragma unroll
                for (int m = 0; m < j; ++m) e -= W[i][m] * W[j][m];
                W[i][j] = i == j ? rsqrt(e) : e * W[j][j];
            }
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = 0; c < 6; ++c) {
                T e = 0.0;
#pragma unroll
                for (int m = r; m < 6; ++m) e += L[m][r] * A[6 * c + m];
                Y[r][c] = e;
            }
        solve(W, Y);
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = r; c < 6; ++c) {
                T e = P[up(r, c)];
#pragma unroll
                for (int m = 0; m < 6; ++m) e += Y[m][r] * Y[m][c];
                P[up(r, c)] = e;
            }
    }
    static __device__ void state(T *S, const T *e)
    {
        T P[21];
#pragma unroll
        for (int i = 0; i < 21; ++i) P[i] = e[36 + i];
        carry(S, e, e + 57, P);
#pragma unroll
        for (int i = 0; i < 21; ++i) S[i] = P[i];
    }
    /* j after i. */
    template <class In, class Out>
    static __device__ __forceinline__ void combine(const In &i, const In &j, const Out &o)
    {
        T L[6][6], U[6][6], B[6][6], W[6][6], Y[6][6];
        root(i.from(36), L);
        root(j.from(57), U);
        /* J_i + A_i* U (I + B* B)^-1 U* A_i, with B* in B */
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = 0; c < 6; ++c) {
                T e = 0.0, z = 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) {
                    if (m >= r && m >= c) e += U[m][r] * L[m][c];
                    if (m >= r) z += U[m][r] * i[6 * m + c];
                }
                B[r][c] = e;
                Y[r][c] = z;
            }
        factor(B, W);
        solve(W, Y);
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = r; c < 6; ++c) {
                T e = i[57 + up(r, c)];
#pragma unroll
                for (int m = 0; m < 6; ++m) e += Y[m][r] * Y[m][c];
                o[57 + up(r, c)] = e;
            }
        /* (I + P J)^-1 A_i = A_i - L B* (I + B* B)^-1 U* A_i: what is left is W^-* Y */
#pragma unroll
        for (int c = 0; c < 6; ++c)
#pragma unroll
            for (int r = 5; r >= 0; --r) {
                T e = Y[r][c];
#pragma unroll
                for (int m = r + 1; m < 6; ++m) e -= W[m][r] * Y[m][c];
                Y[r][c] = e * W[r][r];
            }
#pragma unroll
        for (int c = 0; c < 6; ++c) {
            T x[6], y[6];
#pragma unroll
            for (int r = 0; r < 6; ++r) {
                T e = 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) e += B[m][r] * Y[m][c];
                x[r] = e;
            }
#pragma unroll
            for (int r = 0; r < 6; ++r) {
                T e = i[6 * r + c];
#pragma unroll
                for (int m = 0; m <= r; ++m) e -= L[r][m] * x[m];
                y[r] = e;
            }
#pragma unroll
            for (int r = 0; r < 6; ++r) {
                T e = 0.0;
#pragma unroll
                for (int m = 0; m < 6; ++m) e += j[6 * r + m] * y[m];
                o[6 * r + c] = e;
            }
        }
        /* P_j + A_j L (I + B B*)^-1 L* A_j* */
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = r + 1; c < 6; ++c) {
                const T e = B[r][c];
                B[r][c] = B[c][r];
                B[c][r] = e;
            }
        factor(B, W);
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = 0; c < 6; ++c) {
                T e = 0.0;
#pragma unroll
                for (int m = r; m < 6; ++m) e += L[m][r] * j[6 * c + m];
                Y[r][c] = e;
            }
        solve(W, Y);
#pragma unroll
        for (int r = 0; r < 6; ++r)
#pragma unroll
            for (int c = r; c < 6; ++c) {
                T e = j[36 + up(r, c)];
#pragma unroll
                for (int m = 0; m < 6; ++m) e += Y[m][r] * Y[m][c];
                o[36 + up(r, c)] = e;
            }
    }
};

/* An element in shared memory, where those of neighbouring threads are neighbours. */
struct Shared {
    T *at;
    __device__ __forceinline__ T &operator[](int i) const { return at[i * THREADS]; }
    __device__ __forceinline__ Shared from(int i) const { return Shared{at + i * THREADS}; }
};

/* The element of a run, at its place in the order of the scan. */
template <class E, class X>
__device__ __forceinline__ void store(const X &x, int place, int runs, T *elements)
{
#pragma unroll
    for (int i = 0; i < E::SIZE; ++i) elements[(long long)i * runs + place] = x[i];
}

template <class E, class X>
__device__ __forceinline__ void load(X &x, int place, int runs, const T *elements)
{
#pragma unroll
    for (int i = 0; i < E::SIZE; ++i) x[i] = elements[(long long)i * runs + place];
}

/* What comes in at a run: the state before its block, then the elements before it in the block. */
template <class E>
__device__ __forceinline__ void incoming(
    T *x, int place, int runs, const T *elements, const T *totals)
{
    const int block = place / THREADS, blocks = (runs + THREADS - 1) / THREADS;
#pragma unroll
    for (int i = 0; i < E::STATE; ++i)
        x[i] = block ? totals[(36 + i) * blocks + block - 1] : 0.0;
    if (place % THREADS) {
        T e[E::SIZE];
        load<E>(e, place - 1, runs, elements);
        E::state(x, e);
    }
}

/* All elements of a block from its first one on: log2 rounds, each thread one element, from one
   half of the shared memory to the other. The last ones are the elements of the blocks. */
template <class E> __device__ void scan(T *elements, int count, T *totals)
{
    extern __shared__ T shared[];
    const int lane = threadIdx.x, first = blockIdx.x * THREADS, place = first + lane;
    Shared from{shared + lane}, to{shared + E::SIZE * THREADS + lane};
    if (place < count) load<E>(from, place, count, elements);
    __syncthreads();
    const int here = count - first < THREADS ? count - first : THREADS;
#pragma unroll 1
    for (int step = 1; step < here; step *= 2) {
        if (lane >= step && lane < here) {
            E::combine(Shared{from.at - step}, from, to);
        } else {
#pragma unroll 6
            for (int i = 0; i < E::SIZE; ++i) to[i] = from[i];
        }
        __syncthreads();
        T *const other = from.at;
        from.at = to.at;
        to.at = other;
    }
    if (place < count) store<E>(from, place, count, elements);
    if (totals && lane == here - 1)
        store<E>(from, blockIdx.x, (count + THREADS - 1) / THREADS, totals);
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_affine(T *e, int n, T *totals)
{
    scan<Affine>(e, n, totals);
}
extern "C" __global__ void __launch_bounds__(THREADS) scan_kalman(T *e, int n, T *totals)
{
    scan<Kalman>(e, n, totals);
}
""".replace("THREADS", str(THREADS))
