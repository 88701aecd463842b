// Projection of 32 rows: culling, screen-space covariance, colour (TRAINING.md 2.2). Tiles are
// counted by the caller, in code shared with the emission of instances.
#include "kernels/isa/projection.h"
#include "kernels/isa/spherical_harmonics.h"

namespace millrace::kernels::MILLRACE_ISA {

void project_block(const ProjectArgs& args, uint32_t block) {
  const CameraRecord& cam = *args.camera;
  const int degree = static_cast<int>(args.step->sh_degree);
  const int n_rest = (degree + 1) * (degree + 1) - 1;
  const float* geometry = args.geometry + static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock;
  const float* sh_rest =
      args.sh_rest + static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock;
  const uint32_t first_row = block * kRowBlock;
  for (uint32_t offset = 0; offset < kRowBlock; offset += kWidth) {
    if (first_row + offset >= args.rows) break;
    const float* group = geometry + offset;
    const Rows rows = load_rows(group);
    const Projection p = project_rows(rows, cam);

    // log2-free threshold: tau = ln(255 o), from the scalar library once per row below.
    vi visible = (p.camera.z >= cam.near_plane) & (p.camera.z <= 1e10f) &
                 (rows.opacity >= kAlphaMin) & (rows.norm2 >= kMinQuaternionNorm2) &
                 (p.determinant >= kDeterminantMin);
    // min() and exp() let a NaN through as a number.
    visible &= finite(load(group + kLaneOpacity * kRowBlock));
    for (const vf raw : rows.raw_scale) visible &= finite(raw);
    const vf mean_x = p.x * cam.fx + cam.cx, mean_y = p.y * cam.fy + cam.cy;

    const ViewDirection view = view_direction(rows.mean, cam);
    vf basis[15];
    sh_basis(degree, view.unit.x, view.unit.y, view.unit.z, basis);
    vf color[3];
    for (uint32_t c = 0; c < 3; ++c) {
      vf value = 0.5f + kSh0 * load(group + (kLaneSh0 + c) * kRowBlock);
      for (int k = 0; k < n_rest; ++k) {
        value += basis[k] * load(sh_rest + (3 * static_cast<uint32_t>(k) + c) * kRowBlock + offset);
      }
      visible &= finite(value);
      color[c] = min(max(value, vf{}), broadcast(kMaxBlendColor));
    }
    visible &=
        finite(mean_x) & finite(mean_y) & finite(p.determinant) & finite(p.cov_a) & finite(p.cov_c);

    for (uint32_t i = 0; i < static_cast<uint32_t>(kWidth); ++i) {
      const uint32_t row = first_row + offset + i;
      if (row >= args.rows) break;
      args.n_tiles[row] = visible[i] ? 1 : 0;
      args.depth_key[row] = visible[i] ? static_cast<uint32_t>(bits_to_int(p.camera.z)[i]) : ~0u;
      if (!visible[i]) continue;
      Projected& out = args.projected[row];
      out.x = mean_x[i];
      out.y = mean_y[i];
      out.a = p.factor_a[i];
      out.b = p.factor_b[i];
      out.c = p.factor_c[i];
      out.opacity = rows.opacity[i];
      out.red = color[0][i];
      out.green = color[1][i];
      out.blue = color[2][i];
      out.depth = p.camera.z[i];
      const float tau2 = 2.0f * __builtin_logf(255.0f * rows.opacity[i]);
      const float r2 = tau2 > 0.0f ? tau2 : 0.0f;
      out.extent_x = __builtin_sqrtf(r2 * p.cov_a[i]);
      out.extent_y = __builtin_sqrtf(r2 * p.cov_c[i]);
    }
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
