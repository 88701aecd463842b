// From instance gradients back to the parameters of 32 rows (TRAINING.md 2.6), with two epilogues:
// Adam in registers, or addition to a gradient buffer. Both use the same expressions, so both give
// the same bits.
#include "kernels/isa/crop.h"
#include "kernels/isa/projection.h"
#include "kernels/isa/regularisers.h"
#include "kernels/isa/spherical_harmonics.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-15f;

// Gradients of kWidth rows.
struct RowGradients {
  vf geometry[kGeometryLanes];
  vf color[3];  // with respect to the colour before SH is applied: sh_rest gradient = basis x color
  vf basis[15];
};

// The instance gradients of kWidth rows, each summed in slot order.
struct ScreenGradients {
  vf x, y, yy11, yy12, yy22, opacity, color[3], weight, weight_error, depth;
};

ScreenGradients sum_instances(const BackwardArgs& args, uint32_t first_row) {
  float lanes[12][kWidth] = {};
  for (uint32_t i = 0; i < static_cast<uint32_t>(kWidth); ++i) {
    const uint32_t row = first_row + i;
    if (row >= args.rows) break;
    const uint32_t n = args.n_tiles[row];
    if (n == 0) continue;
    const float* record = reinterpret_cast<const float*>(args.gradients + args.first_slot[row]);
    float total[12] = {};
    for (uint32_t t = 0; t < n; ++t) {
      for (int k = 0; k < 12; ++k) total[k] += record[12 * static_cast<uint64_t>(t) + k];
    }
    for (int k = 0; k < 12; ++k) lanes[k][i] = total[k];
  }
  return {load(lanes[0]),
          load(lanes[1]),
          load(lanes[2]),
          load(lanes[3]),
          load(lanes[4]),
          load(lanes[5]),
          {load(lanes[6]), load(lanes[7]), load(lanes[8])},
          load(lanes[9]),
          load(lanes[10]),
          load(lanes[11])};
}

RowGradients row_gradients(const BackwardArgs& args, const float* group, const float* sh_rest,
                           const vi visible, const ScreenGradients& d) {
  const CameraRecord& cam = *args.camera;
  const int degree = static_cast<int>(args.step->sh_degree);
  const int n_rest = (degree + 1) * (degree + 1) - 1;
  const Rows rows = load_rows(group);
  const Projection p = project_rows(rows, cam, (args.step->modes & kModeMipFilter) != 0);
  RowGradients out;

  // Colour: the clamp passes a gradient only where it points back inside.
  const ViewDirection view = view_direction(rows.mean, cam);
  sh_basis(degree, view.unit.x, view.unit.y, view.unit.z, out.basis);
  vf basis_weight[15];
  for (int k = 0; k < n_rest; ++k) basis_weight[k] = vf{};
  for (uint32_t c = 0; c < 3; ++c) {
    vf value = 0.5f + kSh0 * load(group + (kLaneSh0 + c) * kRowBlock);
    for (int k = 0; k < n_rest; ++k) {
      value += out.basis[k] * load(sh_rest + (3 * static_cast<uint32_t>(k) + c) * kRowBlock);
    }
    const vi pass = ((value >= 0.0f) | (d.color[c] < 0.0f)) &
                    ((value <= kMaxBlendColor) | (d.color[c] > 0.0f)) & visible;
    out.color[c] = pass ? d.color[c] : vf{};
    out.geometry[kLaneSh0 + c] = kSh0 * out.color[c];
    for (int k = 0; k < n_rest; ++k) {
      basis_weight[k] +=
          out.color[c] * load(sh_rest + (3 * static_cast<uint32_t>(k) + c) * kRowBlock);
    }
  }
  Vec3 d_unit = {vf{}, vf{}, vf{}};
  sh_basis_gradient(degree, view.unit.x, view.unit.y, view.unit.z, basis_weight, d_unit.x, d_unit.y,
                    d_unit.z);
  const vf along = dot(view.unit, d_unit);
  const vf inv_length = 1.0f / view.length;
  Vec3 d_mean = {(d_unit.x - view.unit.x * along) * inv_length,
                 (d_unit.y - view.unit.y * along) * inv_length,
                 (d_unit.z - view.unit.z * along) * inv_length};

  // Covariance = U U^T + dilation with U = [r1; r2] R diag(s), and its inverse is F F^T. With M the
  // half moments in y = F^T d, dCovariance = -F M F^T, so dU = -2 F M (F^T U).
  Vec3 d_r1 = {vf{}, vf{}, vf{}}, d_r2 = {vf{}, vf{}, vf{}};
  Vec3 d_column[3];
  for (int k = 0; k < 3; ++k) {
    const vf t1 = p.factor_a * p.u1[k] + p.factor_b * p.u2[k], t2 = p.factor_c * p.u2[k];
    const vf n1 = -2.0f * (d.yy11 * t1 + d.yy12 * t2), n2 = -2.0f * (d.yy12 * t1 + d.yy22 * t2);
    const vf du1 = p.factor_a * n1, du2 = p.factor_b * n1 + p.factor_c * n2;
    const vi moves = rows.raw_scale[k] < kMaxRawScale;
    out.geometry[kLaneScale + k] = moves ? n1 * t1 + n2 * t2 : vf{};
    const vf dq1 = du1 * rows.scale[k], dq2 = du2 * rows.scale[k];
    d_r1.x += dq1 * p.column[k].x;
    d_r1.y += dq1 * p.column[k].y;
    d_r1.z += dq1 * p.column[k].z;
    d_r2.x += dq2 * p.column[k].x;
    d_r2.y += dq2 * p.column[k].y;
    d_r2.z += dq2 * p.column[k].z;
    d_column[k] = {dq1 * p.r1.x + dq2 * p.r2.x, dq1 * p.r1.y + dq2 * p.r2.y,
                   dq1 * p.r1.z + dq2 * p.r2.z};
  }

  // Jacobian to camera coordinates.
  const float* m = cam.rotation;
  const Vec3 w1 = {broadcast(m[0]), broadcast(m[1]), broadcast(m[2])};
  const Vec3 w2 = {broadcast(m[3]), broadcast(m[4]), broadcast(m[5])};
  const Vec3 w3 = {broadcast(m[6]), broadcast(m[7]), broadcast(m[8])};
  const vf dj11 = dot(w1, d_r1), dj13 = dot(w3, d_r1), dj22 = dot(w2, d_r2), dj23 = dot(w3, d_r2);
  const vf inv_z = 1.0f / p.camera.z;
  const vf in_x = p.x_inside ? broadcast(1.0f) : vf{}, in_y = p.y_inside ? broadcast(1.0f) : vf{};
  const vf d_px = p.j11 * d.x - in_x * p.j11 * dj13 * inv_z;
  const vf d_py = p.j22 * d.y - in_y * p.j22 * dj23 * inv_z;
  const vf d_pz = -p.j11 * p.x * d.x - p.j22 * p.y * d.y + d.depth +
                  (p.j11 * ((1.0f + in_x) * p.tx * dj13 - dj11) +
                   p.j22 * ((1.0f + in_y) * p.ty * dj23 - dj22)) *
                      inv_z;
  d_mean.x += m[0] * d_px + m[3] * d_py + m[6] * d_pz;
  d_mean.y += m[1] * d_px + m[4] * d_py + m[7] * d_pz;
  d_mean.z += m[2] * d_px + m[5] * d_py + m[8] * d_pz;
  out.geometry[kLaneMean] = d_mean.x;
  out.geometry[kLaneMean + 1] = d_mean.y;
  out.geometry[kLaneMean + 2] = d_mean.z;

  // Rotation matrix to the raw quaternion; R = I + s M(q) with s = 2 / |q|^2.
  const vf w = rows.w, x = rows.x, y = rows.y, z = rows.z, s = 2.0f / rows.norm2;
  const vf dxx = -d_column[2].z - d_column[1].y, dyy = -d_column[2].z - d_column[0].x,
           dzz = -d_column[1].y - d_column[0].x;
  const vf dxy = d_column[1].x + d_column[0].y, dxz = d_column[2].x + d_column[0].z,
           dyz = d_column[2].y + d_column[1].z;
  const vf drx = d_column[1].z - d_column[2].y, dry = d_column[2].x - d_column[0].z,
           drz = d_column[0].y - d_column[1].x;
  const vf h = s * (x * x * dxx + y * y * dyy + z * z * dzz + x * y * dxy + x * z * dxz +
                    y * z * dyz + w * x * drx + w * y * dry + w * z * drz);
  out.geometry[kLaneRotation] = s * (x * drx + y * dry + z * drz - w * h);
  out.geometry[kLaneRotation + 1] = s * (2.0f * x * dxx + y * dxy + z * dxz + w * drx - x * h);
  out.geometry[kLaneRotation + 2] = s * (2.0f * y * dyy + x * dxy + z * dyz + w * dry - y * h);
  out.geometry[kLaneRotation + 3] = s * (2.0f * z * dzz + x * dxz + y * dyz + w * drz - z * h);
  // The mip filter's compensation is taken for a constant: its own gradient is left out.
  out.geometry[kLaneOpacity] = p.compensation * d.opacity * rows.opacity * (1.0f - rows.opacity);
  // A culled row may have produced anything above; it has no data gradient.
  for (vf& g : out.geometry) g = visible ? g : vf{};
  return out;
}

// One Adam update of one lane (Kingma and Ba 2015, algorithm 1); rows outside `keep` stay as they
// are. The same lane of the next block, `ahead` floats on, is fetched meanwhile: the short runs of
// each array are too many for the processor to foresee.
void adam_lane(const GroupPointers& group, uint64_t index, uint64_t ahead, vf gradient, vf rate,
               float inv_sqrt_bias2, const vi keep, const vf* push = nullptr) {
  __builtin_prefetch(group.first_moment + index + ahead, 1);
  __builtin_prefetch(group.second_moment + index + ahead, 1);
  __builtin_prefetch(group.value + index + ahead, 1);
  const vf g = min(max(gradient, broadcast(-kGradientClamp)), broadcast(kGradientClamp));
  const vf m0 = load(group.first_moment + index), v0 = load(group.second_moment + index);
  const vf p0 = load(group.value + index);
  // A push goes into the first moment alone, in units of the second's root.
  const vf pushed = push ? g + *push * (sqrt(v0) * inv_sqrt_bias2 + kEpsilon) : g;
  const vf m = kBeta1 * m0 + (1.0f - kBeta1) * pushed;
  const vf v = kBeta2 * v0 + (1.0f - kBeta2) * (g * g);
  const vf p = p0 - rate * m / (sqrt(v) * inv_sqrt_bias2 + kEpsilon);
  store(group.first_moment + index, keep ? m : m0);
  store(group.second_moment + index, keep ? v : v0);
  store(group.value + index, keep ? p : p0);
}

float lane_rate(const StepBlock& step, uint32_t lane) {
  if (lane < kLaneScale) return step.rate_means;
  if (lane < kLaneRotation) return step.rate_scales;
  if (lane < kLaneOpacity) return step.rate_rotations;
  if (lane < kLaneSh0) return step.rate_opacities;
  return step.rate_sh0;
}

// By how much MRNF's rate of the means is larger: the scene's median size, and for rows outside the
// cameras' hull their own size over the median one (TRAINING.md 1.4).
vf means_factor(const BackwardArgs& args, const float* group) {
  const SceneBounds& bounds = args.bounds;
  const vf size = broadcast(bounds.median_size);
  const float limit = args.step->mrnf.far_rate_limit;
  if (!(limit > 1.0f) || !(bounds.hull_radius > 0) || !(bounds.median_extent > 0)) return size;
  vf distance2 = {};
  for (uint32_t k = 0; k < 3; ++k) {
    const vf d = load(group + (kLaneMean + k) * kRowBlock) - bounds.hull_centre[k];
    distance2 += d * d;
  }
  const vf log_extent =
      (load(group + kLaneScale * kRowBlock) + load(group + (kLaneScale + 1) * kRowBlock) +
       load(group + (kLaneScale + 2) * kRowBlock)) *
      (1.0f / 3.0f);
  const vf ratio = exp(min(log_extent, broadcast(kMaxRawScale))) / bounds.median_extent;
  const vi is_far = distance2 > 4.0f * bounds.hull_radius * bounds.hull_radius;
  return size * (is_far ? min(max(ratio, broadcast(1.0f)), broadcast(limit)) : broadcast(1.0f));
}

// What draws the scales of rows that were too large on the screen down, in units of the second
// moment's root: penalty log2(share / limit) (TRAINING.md 3.4).
vf scale_push(const BackwardArgs& args, const float* statistics) {
  const MrnfStep& mrnf = args.step->mrnf;
  const vf share = load(statistics + kStatShare * kRowBlock);
  float push[kWidth];
  for (int i = 0; i < kWidth; ++i) {
    push[i] = share[i] > mrnf.screen_share_limit
                  ? mrnf.screen_share_penalty * __builtin_log2f(share[i] / mrnf.screen_share_limit)
                  : 0.0f;
  }
  return load(push);
}

vi live_rows(uint32_t first_row, uint32_t rows) {
  vi mask;
  for (int i = 0; i < kWidth; ++i) mask[i] = first_row + static_cast<uint32_t>(i) < rows ? -1 : 0;
  return mask;
}

uint32_t count(vi mask) {
  uint32_t n = 0;
  for (int i = 0; i < kWidth; ++i) n += mask[i] ? 1 : 0;
  return n;
}

// Adam on every lane of kWidth rows. `rest(lane)` gives the gradient of an SH-rest lane.
template <class Rest>
uint32_t apply_adam(const BackwardArgs& args, uint32_t block, uint32_t offset, vf* gradient,
                    const Rest& rest) {
  const StepBlock& step = *args.step;
  const uint64_t base = static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock + offset;
  const uint64_t rest_base = static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock + offset;
  const float* row = args.geometry.value + base;
  add_regularisers(step, static_cast<float>(args.live), row, gradient);
  // mean(c^2) over all stored coefficients. Written as one fma: both epilogues must round alike.
  const float decay = 2.0f * step.mrnf.sh_rest_reg /
                      (static_cast<float>(args.live) * static_cast<float>(args.sh_rest_lanes));
  const auto rest_gradient = [&](uint32_t lane) {
    if (decay == 0.0f) return rest(lane);
    return fma(broadcast(decay), load(args.sh_rest.value + rest_base + lane * kRowBlock),
               rest(lane));
  };

  constexpr uint64_t kNextGeometry = kGeometryLanes * kRowBlock;
  const uint64_t next_rest = uint64_t{args.sh_rest_lanes} * kRowBlock;
  const uint32_t n_lanes = 3 * ((step.sh_degree + 1) * (step.sh_degree + 1) - 1);
  const vi live = live_rows(block * kRowBlock + offset, args.rows);
  vi keep = live;
  for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) keep &= finite(gradient[lane]);
  for (uint32_t lane = 0; lane < n_lanes; ++lane) keep &= finite(rest_gradient(lane));
  const uint32_t n_skipped = count(live & ~keep);

  // Rows outside the crop box take smaller steps, or none.
  vf pace = broadcast(1.0f);
  if (step.crop.enabled) {
    pace = outside_crop(step.crop, load_mean(row)) ? broadcast(step.crop.rate_scale) : pace;
    keep &= pace > 0.0f;
  }
  vf means_rate = broadcast(step.rate_means), push = {};
  const float limit = step.mrnf.screen_share_limit;
  const bool pushes = args.statistics && limit > 0 && limit < 1;
  if (step.mrnf.modes & kMrnfOn) means_rate *= means_factor(args, row);
  if (pushes) {
    push =
        scale_push(args, args.statistics +
                             static_cast<uint64_t>(block) * kStatisticLanes * kRowBlock + offset);
  }
  for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
    const vf rate = lane < kLaneScale ? means_rate : broadcast(lane_rate(step, lane));
    const bool is_scale = lane >= kLaneScale && lane < kLaneRotation;
    adam_lane(args.geometry, base + lane * kRowBlock, kNextGeometry, gradient[lane], rate * pace,
              step.inv_sqrt_bias2, keep, pushes && is_scale ? &push : nullptr);
  }
  for (uint32_t lane = 0; lane < n_lanes; ++lane) {
    adam_lane(args.sh_rest, rest_base + lane * kRowBlock, next_rest, rest_gradient(lane),
              step.rate_sh_rest * pace, step.inv_sqrt_bias2, keep);
  }
  return n_skipped;
}

vi visible_rows(const BackwardArgs& args, uint32_t first_row) {
  vi mask;
  for (uint32_t i = 0; i < static_cast<uint32_t>(kWidth); ++i) {
    mask[i] = first_row + i < args.rows && args.n_tiles[first_row + i] != 0 ? -1 : 0;
  }
  return mask;
}

// Of the screen, how much each row covers: r / (max(d, r) + sqrt(max(d^2 - r^2, 0))) with r the
// radius at which the Gaussian fades and d its distance (TRAINING.md 2.2).
vf screen_share(const Rows& rows, const CameraRecord& cam) {
  const vf largest = max(rows.scale[0], max(rows.scale[1], rows.scale[2]));
  const vf visible = max(rows.opacity * 255.0f, broadcast(1.0f));
  vf log_visible = {};
  for (int i = 0; i < kWidth; ++i) log_visible[i] = __builtin_logf(visible[i]);
  const vf r2 = largest * largest * (2.0f * log_visible);
  const vf r = sqrt(r2);
  const Vec3 v = {rows.mean.x - cam.centre[0], rows.mean.y - cam.centre[1],
                  rows.mean.z - cam.centre[2]};
  const vf d2 = dot(v, v), d = sqrt(d2);
  const vf below = max(d, r) + sqrt(max(d2 - r2, vf{}));
  return below > 0.0f ? r / below : vf{};
}

// What one view adds to the window's statistics of kWidth rows; `shares` as the step began.
void add_statistics(float* lanes, const ScreenGradients& d, vf edges, vf shares, vi visible) {
  const auto update = [&](uint32_t lane, auto merge) {
    float* place = lanes + lane * kRowBlock;
    const vf old = load(place);
    const vf merged = merge(old);
    store(place, visible & finite(merged) ? merged : old);
  };
  update(kStatWeight, [&](vf old) { return old + d.weight; });
  update(kStatError, [&](vf old) { return max(d.weight_error, old); });
  update(kStatEdge, [&](vf old) { return old + edges; });
  update(kStatShare, [&](vf old) { return max(shares, old); });
}

}  // namespace

uint32_t backward_adam_block(const BackwardArgs& args, uint32_t block) {
  uint32_t skipped = 0;
  const float* sh_rest =
      args.sh_rest.value + static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock;
  for (uint32_t offset = 0; offset < kRowBlock; offset += kWidth) {
    const uint32_t first_row = block * kRowBlock + offset;
    if (first_row >= args.rows) break;
    const vi visible = visible_rows(args, first_row);
    ScreenGradients d = sum_instances(args, first_row);
    const vf edges = args.records_edges ? d.depth : vf{};
    if (args.records_edges) d.depth = vf{};
    const float* group =
        args.geometry.value + static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock + offset;
    const vf shares = args.statistics ? screen_share(load_rows(group), *args.camera) : vf{};
    RowGradients g = row_gradients(args, group, sh_rest + offset, visible, d);
    skipped += apply_adam(args, block, offset, g.geometry, [&](uint32_t lane) {
      return visible ? g.basis[lane / 3] * g.color[lane % 3] : vf{};
    });
    if (!args.statistics) continue;
    add_statistics(
        args.statistics + static_cast<uint64_t>(block) * kStatisticLanes * kRowBlock + offset, d,
        edges, shares, visible);
  }
  return skipped;
}

void backward_accumulate_block(const BackwardArgs& args, uint32_t block) {
  const uint32_t n_lanes = 3 * ((args.step->sh_degree + 1) * (args.step->sh_degree + 1) - 1);
  const uint64_t base = static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock;
  const uint64_t rest_base = static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock;
  for (uint32_t offset = 0; offset < kRowBlock; offset += kWidth) {
    const uint32_t first_row = block * kRowBlock + offset;
    if (first_row >= args.rows) break;
    const vi visible = visible_rows(args, first_row);
    const ScreenGradients d = sum_instances(args, first_row);
    RowGradients g = row_gradients(args, args.geometry.value + base + offset,
                                   args.sh_rest.value + rest_base + offset, visible, d);
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      float* out = args.d_geometry + base + lane * kRowBlock + offset;
      store(out, load(out) + g.geometry[lane]);
    }
    for (uint32_t lane = 0; lane < n_lanes; ++lane) {
      float* out = args.d_sh_rest + rest_base + lane * kRowBlock + offset;
      store(out, load(out) + (visible ? g.basis[lane / 3] * g.color[lane % 3] : vf{}));
    }
  }
}

uint32_t adam_block(const BackwardArgs& args, uint32_t block) {
  uint32_t skipped = 0;
  const float* d_geometry =
      args.d_geometry + static_cast<uint64_t>(block) * kGeometryLanes * kRowBlock;
  const float* d_sh_rest =
      args.d_sh_rest + static_cast<uint64_t>(block) * args.sh_rest_lanes * kRowBlock;
  for (uint32_t offset = 0; offset < kRowBlock; offset += kWidth) {
    if (block * kRowBlock + offset >= args.rows) break;
    vf gradient[kGeometryLanes];
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      gradient[lane] = load(d_geometry + lane * kRowBlock + offset);
    }
    skipped += apply_adam(args, block, offset, gradient, [&](uint32_t lane) {
      return load(d_sh_rest + lane * kRowBlock + offset);
    });
  }
  return skipped;
}

}  // namespace millrace::kernels::MILLRACE_ISA
