// Real spherical harmonics of degree 1 to 3 as 3D Gaussian splatting orders and signs them
// (TRAINING.md 1.1).
#pragma once

#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {

constexpr float kSh0 = 0.28209479177387814f;

/// basis[k] for the 3, 8 or 15 coefficients of `degree`; (x, y, z) is a unit vector.
static inline void sh_basis(int degree, vf x, vf y, vf z, vf* basis) {
  if (degree < 1) return;
  basis[0] = -0.48860251190291987f * y;
  basis[1] = 0.48860251190291987f * z;
  basis[2] = -0.48860251190291987f * x;
  if (degree < 2) return;
  const vf xx = x * x, yy = y * y, zz = z * z;
  basis[3] = 1.0925484305920792f * x * y;
  basis[4] = -1.0925484305920792f * y * z;
  basis[5] = 0.94617469575755997f * zz - 0.31539156525251999f;
  basis[6] = -1.0925484305920792f * x * z;
  basis[7] = 0.54627421529603959f * (xx - yy);
  if (degree < 3) return;
  basis[8] = 0.59004358992664352f * y * (-3.0f * xx + yy);
  basis[9] = 2.8906114426405538f * x * y * z;
  basis[10] = 0.45704579946446572f * y * (1.0f - 5.0f * zz);
  basis[11] = 0.3731763325901154f * z * (5.0f * zz - 3.0f);
  basis[12] = 0.45704579946446572f * x * (1.0f - 5.0f * zz);
  basis[13] = 1.4453057213202769f * z * (xx - yy);
  basis[14] = 0.59004358992664352f * x * (-xx + 3.0f * yy);
}

/// Adds sum_k weight[k] d basis[k] / d(x, y, z) to (d_x, d_y, d_z).
static inline void sh_basis_gradient(int degree, vf x, vf y, vf z, const vf* weight, vf& d_x,
                                     vf& d_y, vf& d_z) {
  if (degree < 1) return;
  d_y += -0.48860251190291987f * weight[0];
  d_z += 0.48860251190291987f * weight[1];
  d_x += -0.48860251190291987f * weight[2];
  if (degree < 2) return;
  constexpr float k2 = 1.0925484305920792f;
  d_x += k2 * (y * weight[3] - z * weight[6] + x * weight[7]);
  d_y += k2 * (x * weight[3] - z * weight[4] - y * weight[7]);
  d_z += -k2 * (y * weight[4] + x * weight[6]) + 1.89234939151512f * z * weight[5];
  if (degree < 3) return;
  const vf xx = x * x, yy = y * y, zz = z * z;
  constexpr float a = 0.59004358992664352f, b = 2.8906114426405538f, c = 0.45704579946446572f,
                  d = 0.3731763325901154f, e = 1.4453057213202769f;
  d_x += -6.0f * a * x * y * weight[8] + b * y * z * weight[9] +
         c * (1.0f - 5.0f * zz) * weight[12] + 2.0f * e * x * z * weight[13] +
         3.0f * a * (yy - xx) * weight[14];
  d_y += 3.0f * a * (yy - xx) * weight[8] + b * x * z * weight[9] +
         c * (1.0f - 5.0f * zz) * weight[10] - 2.0f * e * y * z * weight[13] +
         6.0f * a * x * y * weight[14];
  d_z += b * x * y * weight[9] - 10.0f * c * y * z * weight[10] +
         d * (15.0f * zz - 3.0f) * weight[11] - 10.0f * c * x * z * weight[12] +
         e * (xx - yy) * weight[13];
}

}  // namespace millrace::kernels::MILLRACE_ISA
