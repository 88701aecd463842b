// What projection forward and backward share: loading rows and the pinhole EWA projection
// (TRAINING.md 2.2).
#pragma once

#include "kernels/isa/hot.h"
#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {

void project_block(const ProjectArgs& args, uint32_t block);
uint32_t backward_adam_block(const BackwardArgs& args, uint32_t block);
void backward_accumulate_block(const BackwardArgs& args, uint32_t block);
uint32_t adam_block(const BackwardArgs& args, uint32_t block);

/// A 3-vector of row vectors.
struct Vec3 {
  vf x, y, z;
};
static inline vf dot(const Vec3& a, const Vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

/// kWidth rows of the geometry group, activated.
struct Rows {
  Vec3 mean;
  vf raw_scale[3], scale[3];  // log, and standard deviation in world units
  vf w, x, y, z, norm2;       // raw quaternion
  vf opacity;                 // after the sigmoid
};

/// `group` points at the block's lanes, offset to the first of the kWidth rows.
static inline Rows load_rows(const float* group) {
  const auto lane = [&](uint32_t l) { return load(group + l * kRowBlock); };
  Rows r;
  r.mean = {lane(kLaneMean), lane(kLaneMean + 1), lane(kLaneMean + 2)};
  for (uint32_t k = 0; k < 3; ++k) {
    r.raw_scale[k] = lane(kLaneScale + k);
    r.scale[k] = exp(min(r.raw_scale[k], broadcast(kMaxRawScale)));
  }
  r.w = lane(kLaneRotation);
  r.x = lane(kLaneRotation + 1);
  r.y = lane(kLaneRotation + 2);
  r.z = lane(kLaneRotation + 3);
  r.norm2 = r.w * r.w + r.x * r.x + r.y * r.y + r.z * r.z;
  r.opacity = sigmoid(lane(kLaneOpacity));
  return r;
}

/// Everything between a row and its screen-space covariance.
struct Projection {
  Vec3 camera;  // mean in camera coordinates
  vf x, y;      // camera.xy / camera.z
  vf tx, ty;    // clamped to the guard band, for the Jacobian only
  vi x_inside, y_inside;
  vf j11, j13, j22, j23;
  Vec3 r1, r2;                          // rows of J W
  Vec3 column[3];                       // columns of the rotation matrix
  vf q1[3], q2[3];                      // r1 . column, r2 . column
  vf u1[3], u2[3];                      // the same times the scale: covariance = u u^T
  vf cov_a, cov_b, cov_c, determinant;  // with dilation
  vf compensation;                      // of the opacity for the dilation; 1 without mip filter
  vf factor_a, factor_b, factor_c;      // conic = F F^T, F = [a 0; b c]
};

static inline Projection project_rows(const Rows& r, const CameraRecord& cam, bool mip_filter) {
  Projection p;
  const float* m = cam.rotation;
  p.camera.x = m[0] * r.mean.x + m[1] * r.mean.y + m[2] * r.mean.z + cam.translation[0];
  p.camera.y = m[3] * r.mean.x + m[4] * r.mean.y + m[5] * r.mean.z + cam.translation[1];
  p.camera.z = m[6] * r.mean.x + m[7] * r.mean.y + m[8] * r.mean.z + cam.translation[2];
  const vf inv_z = 1.0f / p.camera.z;
  p.x = p.camera.x * inv_z;
  p.y = p.camera.y * inv_z;

  const float width = static_cast<float>(cam.width), height = static_cast<float>(cam.height);
  const float x_low = (-kGuardBand * width - cam.cx) / cam.fx;
  const float x_high = ((1.0f + kGuardBand) * width - cam.cx) / cam.fx;
  const float y_low = (-kGuardBand * height - cam.cy) / cam.fy;
  const float y_high = ((1.0f + kGuardBand) * height - cam.cy) / cam.fy;
  p.x_inside = (p.x >= x_low) & (p.x <= x_high);
  p.y_inside = (p.y >= y_low) & (p.y <= y_high);
  p.tx = min(max(p.x, broadcast(x_low)), broadcast(x_high));
  p.ty = min(max(p.y, broadcast(y_low)), broadcast(y_high));

  p.j11 = cam.fx * inv_z;
  p.j13 = -p.j11 * p.tx;
  p.j22 = cam.fy * inv_z;
  p.j23 = -p.j22 * p.ty;
  p.r1 = {p.j11 * m[0] + p.j13 * m[6], p.j11 * m[1] + p.j13 * m[7], p.j11 * m[2] + p.j13 * m[8]};
  p.r2 = {p.j22 * m[3] + p.j23 * m[6], p.j22 * m[4] + p.j23 * m[7], p.j22 * m[5] + p.j23 * m[8]};

  const vf s = 2.0f / r.norm2;
  const vf w = r.w, x = r.x, y = r.y, z = r.z;
  p.column[0] = {1.0f - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)};
  p.column[1] = {s * (x * y - w * z), 1.0f - s * (x * x + z * z), s * (y * z + w * x)};
  p.column[2] = {s * (x * z + w * y), s * (y * z - w * x), 1.0f - s * (x * x + y * y)};
  vf a0 = vf{}, b0 = vf{}, c0 = vf{};
  for (int k = 0; k < 3; ++k) {
    p.q1[k] = dot(p.r1, p.column[k]);
    p.q2[k] = dot(p.r2, p.column[k]);
    p.u1[k] = p.q1[k] * r.scale[k];
    p.u2[k] = p.q2[k] * r.scale[k];
    a0 += p.u1[k] * p.u1[k];
    b0 += p.u1[k] * p.u2[k];
    c0 += p.u2[k] * p.u2[k];
  }
  // det(U U^T) = |u1 x u2|^2 (Lagrange): no cancellation for needle-like Gaussians.
  const vf cx = p.u1[1] * p.u2[2] - p.u1[2] * p.u2[1];
  const vf cy = p.u1[2] * p.u2[0] - p.u1[0] * p.u2[2];
  const vf cz = p.u1[0] * p.u2[1] - p.u1[1] * p.u2[0];
  const float dilation = mip_filter ? kMipDilation : kDilation;
  const vf undilated = cx * cx + cy * cy + cz * cz;
  p.determinant = undilated + dilation * (a0 + c0) + dilation * dilation;
  p.compensation = mip_filter ? sqrt(undilated / p.determinant) : broadcast(1.0f);
  p.cov_a = a0 + dilation;
  p.cov_b = b0;
  p.cov_c = c0 + dilation;
  const vf root_c = sqrt(p.cov_c), inv_root_det = 1.0f / sqrt(p.determinant);
  p.factor_c = 1.0f / root_c;
  p.factor_a = root_c * inv_root_det;
  p.factor_b = -p.cov_b * p.factor_c * inv_root_det;
  return p;
}

/// The unit vector from the camera to the mean, its length, and (0,0,1) where they coincide.
struct ViewDirection {
  Vec3 unit;
  vf length;
};
static inline ViewDirection view_direction(const Vec3& mean, const CameraRecord& cam) {
  const Vec3 v = {mean.x - cam.centre[0], mean.y - cam.centre[1], mean.z - cam.centre[2]};
  const vf norm2 = dot(v, v);
  const vi valid = norm2 > 1e-30f;
  const vf length = sqrt(valid ? norm2 : broadcast(1.0f));
  const vf inv = 1.0f / length;
  return {{valid ? v.x * inv : vf{}, valid ? v.y * inv : vf{}, valid ? v.z * inv : broadcast(1.0f)},
          length};
}

}  // namespace millrace::kernels::MILLRACE_ISA
