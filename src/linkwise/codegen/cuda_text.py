"""The fixed parts of emitted CUDA: arithmetic of the card, sines, and how rows come in and go out.

`PRIMITIVES` is all that is not plain C++; with another text in its place the kernel runs on a
processor, which is how it is tested where there is no card.
"""

from __future__ import annotations

from typing import Final

PRIMITIVES: Final = {
    "float32": r"""
typedef float T;
typedef float4 Quad; /* 16 bytes */

#define NOT_A_NUMBER __int_as_float(0x7fc00000)

/* 1 / x to one unit in the last place. */
__device__ __forceinline__ T reciprocal(T x)
{
    T y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Not finite if x is not; sums of these are looked at instead of every number. */
__device__ __forceinline__ float watch(T x) { return x; }

/* The number with its sign changed where bit 1 of n is set. */
__device__ __forceinline__ T signed_by(T x, int n)
{
    return __int_as_float(__float_as_int(x) ^ ((n & 2) << 30));
}

/* The integer that was added to 1.5 * 2^23. */
__device__ __forceinline__ int low_bits(T x) { return __float_as_int(x); }
""",
    "float64": r"""
typedef double T;
typedef double2 Quad; /* 16 bytes */

#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000ll)

/* 1 / x: the card's estimate, then two steps of Newton. */
__device__ __forceinline__ T reciprocal(T x)
{
    T y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
}

/* Not finite if x is not: the upper half as a float, which is cheap to add. */
__device__ __forceinline__ float watch(T x) { return __int_as_float(__double2hiint(x)); }

/* The number with its sign changed where bit 1 of n is set. */
__device__ __forceinline__ T signed_by(T x, int n)
{
    return __hiloint2double(__double2hiint(x) ^ ((n & 2) << 30), __double2loint(x));
}

/* The integer that was added to 1.5 * 2^52. */
__device__ __forceinline__ int low_bits(T x) { return __double2loint(x); }
""",
}

MEETING: Final = {
    False: r"""
/* All lanes of the warp have come here, and see what the others stored. */
__device__ __forceinline__ void meet(int) { __syncwarp(); }
""",
    True: r"""
/* All workers of the group have come here, and see what the others stored. */
__device__ __forceinline__ void meet(int group)
{
    asm volatile("bar.sync %0, %1;" : : "r"(group + 1), "n"(32 * WORKERS) : "memory");
}
""",
}

# Coefficients: the minimax polynomials of fdlibm (double) and Cephes (single) on |r| <= pi/4.
TURN: Final = {
    "float32": r"""
__device__ __forceinline__ T size_of(T x) { return fabsf(x); }
__device__ __forceinline__ T larger(T x, T y) { return fmaxf(x, y); }

/* Angles beyond this [rad] are brought within half a turn first. */
#define LARGEST 4.0e4f

__device__ __noinline__ T wrapped(T x)
{
    return (T)atan2(sin((double)x), cos((double)x));
}

/* Sine and cosine: x = k pi/2 + r with |r| <= pi/4; then k quarters of a turn, exactly. */
__device__ __forceinline__ void turn(T x, T &sine, T &cosine)
{
    const T shifted = fmaf(x, 0.636619772f, 12582912.0f);
    const T k = shifted - 12582912.0f;
    const int n = low_bits(shifted);
    T r = fmaf(k, -1.57079637050628662109375f, x);
    r = fmaf(k, 4.37113900018624283e-8f, r);
    const T r2 = r * r;
    T s = fmaf(r2, -1.9515295891e-4f, 8.3321608736e-3f);
    s = fmaf(s, r2, -1.6666654611e-1f);
    s = fmaf(s * r2, r, r);
    T c = fmaf(r2, 2.443315711809948e-5f, -1.388731625493765e-3f);
    c = fmaf(c, r2, 4.166664568298827e-2f);
    c = fmaf(c, r2, -0.5f);
    c = fmaf(c, r2, 1.0f);
    sine = signed_by(n & 1 ? c : s, n);
    cosine = signed_by(n & 1 ? s : c, n + 1);
}
""",
    "float64": r"""
__device__ __forceinline__ T size_of(T x) { return fabs(x); }
__device__ __forceinline__ T larger(T x, T y) { return x > y ? x : y; }

/* Angles beyond this [rad] are brought within half a turn first. */
#define LARGEST 1.0e5

__device__ __noinline__ T wrapped(T x)
{
    return atan2(sin(x), cos(x));
}

/* Sine and cosine: x = k pi/2 + r with |r| <= pi/4; then k quarters of a turn, exactly. */
__device__ __forceinline__ void turn(T x, T &sine, T &cosine)
{
    const T shifted = fma(x, 0.63661977236758134, 6755399441055744.0);
    const T k = shifted - 6755399441055744.0;
    const int n = low_bits(shifted);
    T r = fma(k, -1.5707963267948966, x);
    r = fma(k, -6.123233995736766e-17, r);
    const T r2 = r * r;
    T s = fma(r2, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    s = fma(s, r2, 2.75573137070700676789e-06);
    s = fma(s, r2, -1.98412698298579493134e-04);
    s = fma(s, r2, 8.33333333332248946124e-03);
    s = fma(s, r2, -1.66666666666666324348e-01);
    s = fma(s * r2, r, r);
    T c = fma(r2, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
    c = fma(c, r2, -2.75573143513906633035e-07);
    c = fma(c, r2, 2.48015872894767294178e-05);
    c = fma(c, r2, -1.38888888888741095749e-03);
    c = fma(c, r2, 4.16666666666666019037e-02);
    c = fma(c, r2, -0.5);
    c = fma(c, r2, 1.0);
    sine = signed_by(n & 1 ? c : s, n);
    cosine = signed_by(n & 1 ? s : c, n + 1);
}
""",
}

ROWS: Final = r"""
__device__ __forceinline__ bool all_finite(const T *x, int size)
{
    bool so_far = true;
#pragma unroll 1
    for (int i = 0; i < size; ++i) so_far = so_far && x[i] - x[i] == (T)0;
    return so_far;
}

/* 32 rows of N numbers into shared memory, PITCH apart; sixteen bytes at a time where they lie one
   behind the other, else (another step between rows, the end of the batch) one by one. */
template <int N, int PITCH>
__device__ __forceinline__ void take(T *to, const T *__restrict__ from, i64 step, int rows, int me)
{
    constexpr int V = 16 / sizeof(T), QUADS = 32 * N / V, EACH = 32 * WORKERS;
    constexpr int TURNS = (QUADS + EACH - 1) / EACH;
    if (step == N && rows == 32 && ((unsigned long long)from & 15) == 0) {
        const Quad *__restrict__ source = (const Quad *)from;
        Quad held[TURNS];
#pragma unroll
        for (int i = 0; i < TURNS; ++i)
            if (me + i * EACH < QUADS) held[i] = source[me + i * EACH];
#pragma unroll
        for (int i = 0; i < TURNS; ++i) {
            const int e = me + i * EACH;
            if (e < QUADS) {
                if (PITCH == N) {
                    ((Quad *)to)[e] = held[i];
                } else {
                    const T *const part = (const T *)&held[i];
#pragma unroll
                    for (int k = 0; k < V; ++k)
                        to[e * V + k + (e * V + k) / N * (PITCH - N)] = part[k];
                }
            }
        }
    } else {
#pragma unroll 1
        for (int e = me; e < rows * N; e += EACH)
            to[e / N * PITCH + e % N] = from[e / N * step + e % N];
    }
}

/* 32 rows of results back to the array; rows in trouble are not numbers. */
template <int N, int PITCH>
__device__ __forceinline__ void give(
    T *to, const T *from, const int *flag, bool fine, int rows, int me)
{
    constexpr int V = 16 / sizeof(T), QUADS = 32 * N / V, EACH = 32 * WORKERS;
    constexpr int TURNS = (QUADS + EACH - 1) / EACH;
    if (PITCH == N && fine && rows == 32 && ((unsigned long long)to & 15) == 0) {
#pragma unroll
        for (int i = 0; i < TURNS; ++i) {
            const int e = me + i * EACH;
            if (e < QUADS) ((Quad *)to)[e] = ((const Quad *)from)[e];
        }
    } else {
#pragma unroll 1
        for (int e = me; e < rows * N; e += EACH)
            to[e] = flag[e / N] ? NOT_A_NUMBER : from[e / N * PITCH + e % N];
    }
}
"""
