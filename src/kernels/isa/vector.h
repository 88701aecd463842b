// Vectors as wide as the instruction set that this translation unit is compiled for, and exp on
// them. Everything is in a namespace named for the instruction set: these files are compiled once
// for each.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#ifndef MILLRACE_ISA
#error "compile through cmake/kernel_isa.cmake"
#endif

namespace millrace::kernels::MILLRACE_ISA {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

typedef float vf __attribute__((vector_size(kWidth * 4)));
typedef int32_t vi __attribute__((vector_size(kWidth * 4)));

static inline vf load(const float* p) {
  vf v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
static inline void store(float* p, vf v) { __builtin_memcpy(p, &v, sizeof(v)); }
static inline vf broadcast(float x) { return x - vf{}; }
static inline vi broadcast_int(int32_t x) { return x - vi{}; }
/// a < b ? a : b, and a > b ? a : b: what the instructions give, also for what is not a number.
static inline vf min(vf a, vf b) {
#if defined(__AVX512F__)
  return (vf)_mm512_mask_min_ps((__m512)a, 0xFFFF, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
  return a < b ? a : b;
#endif
}
static inline vf max(vf a, vf b) {
#if defined(__AVX512F__)
  return (vf)_mm512_mask_max_ps((__m512)a, 0xFFFF, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
  return a > b ? a : b;
#endif
}
static inline vf abs(vf a) { return a < 0.0f ? -a : a; }
static inline vf bits_to_float(vi v) { return (vf)v; }
static inline vi bits_to_int(vf v) { return (vi)v; }

/// Where `v` is neither infinite nor NaN, by its bits: v - v can come out as the rounding error of
/// a product that the compiler contracted.
static inline vi finite(vf v) { return (bits_to_int(v) & 0x7f800000) != 0x7f800000; }

/// Whether any lane of a comparison's result is set.
static inline bool any(vi mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)mask) != 0;
#else
  int32_t r = 0;
  for (int i = 0; i < kWidth; ++i) r |= mask[i];
  return r != 0;
#endif
}

/// The outcome of a comparison in each lane, in the form that the instruction set keeps it.
#if defined(__AVX512F__)
typedef __mmask16 Mask;
static inline Mask at_least(vf a, vf b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ);
}
static inline Mask below(vf a, vf b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}
static inline Mask above(vi a, vi b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
static inline Mask both(Mask a, Mask b) { return _mm512_kand(a, b); }
static inline Mask neither(Mask a, Mask b) { return _mm512_knot(_mm512_kor(a, b)); }
static inline vf select(Mask m, vf a, vf b) {
  return (vf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a);
}
static inline vi select(Mask m, vi a, vi b) {
  return (vi)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a);
}
static inline vf keep(Mask m, vf a) { return (vf)_mm512_maskz_mov_ps(m, (__m512)a); }
/// Bit i: lane i.
static inline uint32_t lane_bits(Mask m) { return m; }
#else
typedef vi Mask;
static inline Mask at_least(vf a, vf b) { return a >= b; }
static inline Mask below(vf a, vf b) { return a < b; }
static inline Mask above(vi a, vi b) { return a > b; }
static inline Mask both(Mask a, Mask b) { return a & b; }
static inline Mask neither(Mask a, Mask b) { return ~(a | b); }
static inline vf select(Mask m, vf a, vf b) { return m ? a : b; }
static inline vi select(Mask m, vi a, vi b) { return m ? a : b; }
static inline vf keep(Mask m, vf a) { return bits_to_float(bits_to_int(a) & m); }
static inline uint32_t lane_bits(Mask m) {
#if defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)m));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)m));
#else
  uint32_t bits = 0;
  for (int i = 0; i < kWidth; ++i) bits |= (m[i] ? 1u : 0u) << i;
  return bits;
#endif
}
#endif

/// a b + c and c - a b, fused where the instruction set can. Written out where two places must agree
/// to the bit: what the compiler contracts by itself depends on the surroundings.
static inline vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
static inline vf fnma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return (vf)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vf)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
  return (vf)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return c - a * b;
#endif
}

/// Sum of the lanes, halves first: the same order on every run.
static inline float sum(vf v) {
#if defined(__AVX512F__) || defined(__AVX2__)
#if defined(__AVX512F__)
  __m256 halves[2];
  __builtin_memcpy(halves, &v, sizeof(v));
  const __m256 eight = _mm256_add_ps(halves[0], halves[1]);
#else
  const __m256 eight = (__m256)v;
#endif
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  float lanes[kWidth];
  store(lanes, v);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
#endif
}

static inline vf sqrt(vf v) {
#if defined(__AVX512F__)
  // g++ 12 warns about its own _mm512_sqrt_ps; the masked form says the same.
  return (vf)_mm512_mask_sqrt_ps((__m512)v, 0xFFFF, (__m512)v);
#elif defined(__AVX2__)
  return (vf)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
  return (vf)_mm_sqrt_ps((__m128)v);
#else
  vf r;
  for (int i = 0; i < kWidth; ++i) r[i] = __builtin_sqrtf(v[i]);
  return r;
#endif
}

/// exp(x), relative error below 2e-7; x is clamped to [-87, 88].
/// Method: 2^n 2^f with f in [-1/2, 1/2]; the coefficients are the Taylor-like minimax set of 2^f
/// (degree 6).
static inline vf exp(vf x) {
  x = min(max(x, broadcast(-87.0f)), broadcast(88.0f));
  const vf t = x * 1.44269504088896341f;
  const vf rounded = t + 12582912.0f;  // 1.5 * 2^23: rounds to the nearest integer
  const vf n = rounded - 12582912.0f;
  // x - n ln2 in two parts keeps f exact to the last bits.
  const vf f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vf p = broadcast(1.9875691500e-4f);
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * (f * f) + f + 1.0f;
  const vi scale = bits_to_int(rounded) << 23;
  return bits_to_float(bits_to_int(p) + scale);
}

/// log2(x) for normal x, absolute error below 1e-6.
static inline vf log2(vf x) {
  const vi bits = bits_to_int(x);
  const vi n = (bits - 0x3f3504f3) >> 23;  // x = 2^n m, m in [sqrt(1/2), sqrt(2))
  const vf m = bits_to_float(bits - (n << 23));
  const vf z = (m - 1.0f) / (m + 1.0f), z2 = z * z;
  vf p = fma(broadcast(2.0f / 9.0f), z2, broadcast(2.0f / 7.0f));
  p = fma(p, z2, broadcast(2.0f / 5.0f));
  p = fma(p, z2, broadcast(2.0f / 3.0f));
  p = fma(p, z2, broadcast(2.0f));
  return fma(p * z, broadcast(1.44269504088896341f), __builtin_convertvector(n, vf));
}

static inline vf sigmoid(vf x) { return 1.0f / (1.0f + exp(-x)); }

}  // namespace millrace::kernels::MILLRACE_ISA
