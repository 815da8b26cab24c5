"""The fixed parts of emitted CUDA: arithmetic of the GPU, sines, and loads and stores of rows.

`PRIMITIVES` is the part that is not plain C++; with another text in its place the kernel runs on a
processor, which is how it is tested without a GPU.
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

/* The number with its sign changed where n is odd. */
__device__ __forceinline__ T turned(T x, int n)
{
    return __int_as_float(__float_as_int(x) ^ (n << 31));
}

/* The integer that was added to 1.5 * 2^23. */
__device__ __forceinline__ int low_bits(T x) { return __float_as_int(x); }
""",
    "float64": r"""
typedef double T;
typedef double2 Quad; /* 16 bytes */

#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000ll)

/* 1 / x: the GPU's estimate, then two steps of Newton. */
__device__ __forceinline__ T reciprocal(T x)
{
    T y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
}

/* Not finite if x is not: the upper half as a float, which is cheap to add. */
__device__ __forceinline__ float watch(T x) { return __int_as_float(__double2hiint(x)); }

/* The number with its sign changed where n is odd. */
__device__ __forceinline__ T turned(T x, int n)
{
    return __hiloint2double(__double2hiint(x) ^ (n << 31), __double2loint(x));
}

/* The integer that was added to 1.5 * 2^52. */
__device__ __forceinline__ int low_bits(T x) { return __double2loint(x); }
""",
}

COPIES: Final = r"""
/* From global to shared memory, past the registers; `landed` waits for all of a thread's own. */
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void fetch_quad(Quad *to, const Quad *from)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void fetch(T *to, const T *from)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
        : : "r"(at), "l"(from), "n"(sizeof(T)) : "memory");
}
__device__ __forceinline__ void landed() { asm volatile("cp.async.wait_all;" : : : "memory"); }
#else
__device__ __forceinline__ void fetch_quad(Quad *to, const Quad *from) { *to = *from; }
__device__ __forceinline__ void fetch(T *to, const T *from) { *to = *from; }
__device__ __forceinline__ void landed() {}
#endif
"""

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

# Single: minimax polynomials on |r| <= pi/2, absolute errors 5e-9 and 5.3e-8, so that sine and
# cosine need no exchange. Double: those of fdlibm on |r| <= pi/4.
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

/* Sine and cosine: x = k pi + r with |r| <= pi/2; then k half turns, exactly. */
__device__ __forceinline__ void turn(T x, T &sine, T &cosine)
{
    const T shifted = fmaf(x, 0.318309886f, 12582912.0f);
    const T k = shifted - 12582912.0f;
    const int n = low_bits(shifted);
    T r = fmaf(k, -3.1415927410125732421875f, x);
    r = fmaf(k, 8.74227800037248566e-8f, r);
    const T r2 = r * r;
    T s = fmaf(r2, 2.599471827e-06f, -1.980633533e-04f);
    s = fmaf(s, r2, 8.333013393e-03f);
    s = fmaf(s, r2, -1.666665673e-01f);
    s = fmaf(s * r2, r, r);
    T c = fmaf(r2, 2.319366286e-05f, -1.385589712e-03f);
    c = fmaf(c, r2, 4.166398570e-02f);
    c = fmaf(c, r2, -4.999993145e-01f);
    c = fmaf(c, r2, 1.0f);
    sine = turned(s, n);
    cosine = turned(c, n);
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
    sine = turned(n & 1 ? c : s, n >> 1);
    cosine = turned(n & 1 ? s : c, (n + 1) >> 1);
}
""",
}

ROWS: Final = r"""
__device__ __noinline__ bool all_finite(const T *x, int size)
{
    bool so_far = true;
#pragma unroll 1
    for (int i = 0; i < size; ++i) so_far = so_far && x[i] - x[i] == (T)0;
    return so_far;
}

/* Angles of a row brought within half a turn. */
__device__ __noinline__ void wrap(T *x, int size)
{
#pragma unroll 1
    for (int i = 0; i < size; ++i) x[i] = wrapped(x[i]);
}

/* 32 rows of N numbers on their way into shared memory: sixteen bytes at a time where they lie one
   behind the other, */
template <int N>
__device__ __forceinline__ void take(T *to, const T *from, int me)
{
    constexpr int QUADS = 32 * N * (int)sizeof(T) / 16, EACH = 32 * WORKERS;
#pragma unroll
    for (int i = 0; i < (QUADS + EACH - 1) / EACH; ++i) {
        const int e = me + i * EACH;
        if (e < QUADS) fetch_quad((Quad *)to + e, (const Quad *)from + e);
    }
}

/* else one by one; at the end of the batch its last row replaces those that are missing. */
__device__ __noinline__ void take_slowly(
    T *to, int pitch, const T *from, i64 step, int size, int rows, int me)
{
#pragma unroll 1
    for (int e = me; e < 32 * size; e += 32 * WORKERS) {
        const int row = e / size, column = e % size;
        fetch(to + row * pitch + column, from + (row < rows ? row : rows - 1) * step + column);
    }
}

/* 32 rows of results back to the array; */
template <int N>
__device__ __forceinline__ void give(T *to, const T *from, int me)
{
    constexpr int QUADS = 32 * N * (int)sizeof(T) / 16, EACH = 32 * WORKERS;
#pragma unroll
    for (int i = 0; i < (QUADS + EACH - 1) / EACH; ++i) {
        const int e = me + i * EACH;
        if (e < QUADS) ((Quad *)to)[e] = ((const Quad *)from)[e];
    }
}

/* rows in trouble are not numbers. */
__device__ __noinline__ void give_slowly(
    T *to, int size, const T *from, int pitch, const int *flag, bool fine, int rows, int me)
{
#pragma unroll 1
    for (int e = me; e < rows * size; e += 32 * WORKERS) {
        const int row = e / size;
        to[e] = !fine && flag[row] ? NOT_A_NUMBER : from[row * pitch + e % size];
    }
}

__device__ __forceinline__ bool aligned(const T *x) { return ((unsigned long long)x & 15) == 0; }
"""

COLLECTED: Final = r"""
/* The same for rows whose values lie where `place` says, 33 numbers from one to the next. */
__device__ __noinline__ bool all_finite_there(const T *values, int size)
{
    bool so_far = true;
#pragma unroll 1
    for (int i = 0; i < size; ++i) {
        const T x = values[33 * place[i]];
        so_far = so_far && x - x == (T)0;
    }
    return so_far;
}

/* Lanes of a warp store neighbours of a row. */
template <int N>
__device__ __forceinline__ void give_collected(
    T *to, const T *values, const int *flag, bool fine, int rows, int me)
{
#pragma unroll 1
    for (int column = me; column < N; column += 32 * WORKERS) {
        const T *const from = values + 33 * place[column];
        if (fine && rows == 32) {
#pragma unroll
            for (int row = 0; row < 32; ++row) to[row * N + column] = from[row];
        } else {
#pragma unroll 1
            for (int row = 0; row < rows; ++row)
                to[row * N + column] = !fine && flag[row] ? NOT_A_NUMBER : from[row];
        }
    }
}
"""
