// Projection of 32 rows: culling, screen-space covariance, colour (TRAINING.md 2.2). Tiles are
// counted by the caller, in code shared with the emission of instances.
#include "kernels/isa/projection.h"
#include "kernels/isa/spherical_harmonics.h"

namespace millrace::kernels::MILLRACE_ISA {

namespace {
constexpr float kTwoLn2 = 1.3862943611198906f;
}

void project_block(const ProjectArgs& args, uint32_t block) {
  const CameraRecord& cam = *args.camera;
  const int degree = static_cast<int>(args.step->sh_degree);
  const int n_rest = (degree + 1) * (degree + 1) - 1;
  const bool mip_filter = (args.step->modes & kModeMipFilter) != 0;
  const float* geometry = args.geometry + static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock;
  const float* sh_rest =
      args.sh_rest + static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock;
  const uint32_t first_row = block * kRowBlock;
  for (uint32_t offset = 0; offset < kRowBlock; offset += kWidth) {
    if (first_row + offset >= args.rows) break;
    const float* group = geometry + offset;
    const Rows rows = load_rows(group);
    const Projection p = project_rows(rows, cam, mip_filter);
    const vf opacity = rows.opacity * p.compensation;

    vi visible = (p.camera.z >= cam.near_plane) & (p.camera.z <= 1e10f) & (opacity >= kAlphaMin) &
                 (rows.norm2 >= kMinQuaternionNorm2) & (p.determinant >= kDeterminantMin);
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

    // Half extents of the ellipse where alpha = 1/255.
    const vf r2 = max(kTwoLn2 * log2(255.0f * opacity), vf{});
    const vf extent_x = sqrt(r2 * p.cov_a), extent_y = sqrt(r2 * p.cov_c);
    const vf fields[] = {mean_x,   mean_y,   p.factor_a, p.factor_b, p.factor_c, opacity,
                         color[0], color[1], color[2],   p.camera.z, extent_x,   extent_y};
    static_assert(sizeof(fields) == kWidth * sizeof(Projected));
    float lanes[sizeof(Projected) / sizeof(float)][kWidth];
    __builtin_memcpy(lanes, fields, sizeof(lanes));
    for (uint32_t i = 0; i < static_cast<uint32_t>(kWidth); ++i) {
      const uint32_t row = first_row + offset + i;
      if (row >= args.rows) break;
      args.n_tiles[row] = visible[i] ? 1 : 0;
      args.depth_key[row] = visible[i] ? static_cast<uint32_t>(bits_to_int(p.camera.z)[i]) : ~0u;
      if (!visible[i]) continue;
      float record[sizeof(Projected) / sizeof(float)];
      for (uint32_t field = 0; field < sizeof(Projected) / sizeof(float); ++field) {
        record[field] = lanes[field][i];
      }
      __builtin_memcpy(&args.projected[row], record, sizeof(record));
    }
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
