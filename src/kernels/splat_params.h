// Parameter blocks and device records of the splatting, loss and training kernels: plain data, the
// same bytes on every device.
#pragma once

#include <cstdint>

namespace millrace {

// ---------------------------------------------------------------------------------------------
// Rows. A parameter group is stored in blocks of 32 rows, component-major inside a block:
// [ceil(N/32), lanes, 32] float32, so that 32 neighbouring rows of one component are contiguous.
// ---------------------------------------------------------------------------------------------
constexpr uint32_t kRowBlock = 32;

/// Lanes of the geometry group.
enum GeometryLane : uint32_t {
  kLaneMean = 0,      // 3, world units
  kLaneScale = 3,     // 3, natural log of the standard deviation in world units
  kLaneRotation = 6,  // 4, quaternion w,x,y,z, not normalised
  kLaneOpacity = 10,  // 1, logit
  kLaneSh0 = 11,      // 3, colour = 0.5 + 0.2820948 sh0
  kGeometryLanes = 14,
};

/// Lanes of the statistics that MRNF keeps of each row over one refinement window.
enum StatisticLane : uint32_t {
  kStatWeight = 0,  // sum of blend weights: above 0 if the row was seen
  kStatError = 1,   // the largest sum of weight x error map in one view
  kStatEdge = 2,    // sum of weight x edge map
  kStatShare = 3,   // the largest share of the screen, 0 to 1
  kStatisticLanes = 4,
};
// Lanes of the SH-rest group: coefficient k, channel c at lane 3 k + c; 45 at degree 3.

/// Index of (row, lane) in a group of `lanes` lanes. The one accessor of row storage.
constexpr uint64_t row_index(uint64_t row, uint32_t lane, uint32_t lanes) {
  return (row / kRowBlock * lanes + lane) * kRowBlock + row % kRowBlock;
}
/// Floats that `rows` rows of a group take.
constexpr uint64_t row_floats(uint64_t rows, uint32_t lanes) {
  return (rows + kRowBlock - 1) / kRowBlock * kRowBlock * lanes;
}

// ---------------------------------------------------------------------------------------------
// Rasteriser constants (TRAINING.md 2.1).
// ---------------------------------------------------------------------------------------------
constexpr uint32_t kTileSize = 16;
constexpr float kDilation = 0.3f;     // px^2
constexpr float kMipDilation = 0.1f;  // the same with the mip filter
constexpr float kAlphaMin = 1.0f / 255.0f;
constexpr float kAlphaMax = 0.999f;
constexpr float kTransmittanceMin = 1e-4f;
constexpr float kDeterminantMin = 1e-6f;  // px^4
constexpr float kMaxRawScale = 20.0f;
constexpr float kMaxBlendColor = 4.0f;
constexpr float kMinQuaternionNorm2 = 1e-8f;
constexpr float kGradientClamp = 1e4f;
constexpr float kGuardBand = 0.15f;                // of the image size, beyond each border
constexpr uint32_t kInstanceSortBlock = 1u << 16;  // instances per histogram of the tile sort
constexpr uint32_t kLossSums = 3;                  // |x-y|, SSIM, (x-y)^2
constexpr uint32_t kLossBand = 32;                 // rows per partial sum of the photometric loss

// ---------------------------------------------------------------------------------------------
// Device records.
// ---------------------------------------------------------------------------------------------

/// One pinhole camera of the camera table. No kernel takes a camera by value.
struct CameraRecord {
  float rotation[9];     // world to camera, row-major
  float translation[3];  // world units
  float centre[3];       // world units
  float fx, fy, cx, cy;  // pixels
  float near_plane;      // world units
  uint32_t width, height;
  float reserved[2];
};
static_assert(sizeof(CameraRecord) == 96);

/// How the pixels of a step count (TRAINING.md 4.2 to 4.6).
struct LossStep {
  float structure_weight;          // of thin structures in the pixel weights; 0 = off
  float densify_structure_weight;  // the same in the error map
  float edge_weight;               // of the edge loss; 0 = off
  float mask_penalty;              // of opacity where the mask says background
  uint32_t mask_mode;              // MaskMode
  uint32_t mask_inverted;
  float mask_threshold;
  float outside_weight;  // of pixels whose ray misses the crop box
};
static_assert(sizeof(LossStep) == 32);
enum MaskMode : uint32_t {
  kMaskNone = 0,
  kMaskIgnore = 1,
  kMaskSegment = 2,
  kMaskSegmentAndIgnore = 3,
  kMaskAlphaConsistent = 4,
};

/// The crop box: a row or a ray's point p is inside if world_to_box (p, 1) is between min and max.
struct CropStep {
  float world_to_box[12];  // 3x4, row-major
  float min[3], max[3];
  uint32_t enabled, inverse;
  float rate_scale;  // of the Adam steps and the refinement scores of rows outside
  uint32_t reserved;
};
static_assert(sizeof(CropStep) == 88);

/// MRNF (TRAINING.md 3.1 to 3.4).
struct MrnfStep {
  float growth_threshold, growth_fraction;
  float opacity_decay, scale_decay;                // of a refinement at this step
  float screen_share_limit, screen_share_penalty;  // limit outside (0,1): off
  float erank_reg, dc_reg, sh_rest_reg;
  float far_rate_limit;  // the most that rows outside the camera hull are sped up; 1 = off
  uint32_t modes;        // kMrnf...
  uint32_t reserved;
};
static_assert(sizeof(MrnfStep) == 48);
constexpr uint32_t kMrnfOn = 1;      // rates of means and noise are in median sizes
constexpr uint32_t kMrnfGrows = 2;   // a refinement adds rows
constexpr uint32_t kMrnfBounds = 4;  // a refinement measures the scene's bounds again
constexpr uint32_t kMrnfNoise = 8;
constexpr uint32_t kMrnfGrowthUnit = 1u << 20;  // a growth fraction counts in these parts

/// A growth fraction as a whole number: counts that come of it are the same on every device.
constexpr uint32_t growth_parts(float fraction) {
  return static_cast<uint32_t>(fraction * static_cast<float>(kMrnfGrowthUnit));
}
/// `rows` times growth_parts() / kMrnfGrowthUnit, rounded.
constexpr uint64_t grown_by(uint64_t rows, uint32_t parts) {
  return (rows * parts + kMrnfGrowthUnit / 2) / kMrnfGrowthUnit;
}

/// Exposure correction (TRAINING.md 5).
struct AppearanceStep {
  uint32_t modes;                          // kAppearance...
  uint32_t frame;                          // of the training views
  uint32_t camera;                         // physical camera
  uint32_t updates;                        // of all grids before this step
  float ppisp_rate, ppisp_inv_sqrt_bias2;  // rate / (1 - beta1^t)
  float ppisp_reg;
  float grid_rate, grid_inv_sqrt_bias2;
  float grid_tv;
  float controller_rate, controller_inv_sqrt_bias2;
};
static_assert(sizeof(AppearanceStep) == 48);
constexpr uint32_t kAppearancePpisp = 1;
constexpr uint32_t kAppearanceGrid = 2;
constexpr uint32_t kAppearanceCrf = 4;          // PPISP's response curve too
constexpr uint32_t kAppearanceProject = 8;      // keep means over frames at zero
constexpr uint32_t kAppearanceController = 16;  // only the controller learns

/// All that varies per transaction; uploaded once for each.
struct StepBlock {
  uint64_t transaction;
  uint64_t seed;
  uint32_t epoch;
  uint32_t step;
  uint32_t view;       // row of the camera table
  uint32_t sh_degree;  // active degree
  float background[3];
  // Adam step sizes, learning rate / (1 - beta1^t), in the unit of the parameter.
  float rate_means, rate_scales, rate_rotations, rate_opacities, rate_sh0, rate_sh_rest;
  float inv_sqrt_bias2;  // 1 / sqrt(1 - beta2^t)
  float ssim_weight;     // lambda of (1 - lambda) L1 + lambda (1 - SSIM)
  float opacity_reg;     // weight of mean(opacity)
  float scale_reg;       // weight of mean(scale), already divided by the world's unit
  float noise_scale;     // MCMC: multiplies Sigma eps w; 0 = no noise
  float min_opacity;     // MCMC: rows at or below are dead
  uint32_t max_rows;     // MCMC: the cap
  uint32_t modes;        // bit 0: random background
  uint32_t reserved;
  LossStep loss;
  CropStep crop;
  MrnfStep mrnf;
  AppearanceStep appearance;
};
static_assert(sizeof(StepBlock) == 320);
constexpr uint32_t kModeRandomBackground = 1;
constexpr uint32_t kModeMipFilter = 2;  // less dilation, and opacities make up for it

/// The sticky gate (ARCHITECTURE.md section 4).
struct Gate {
  uint64_t accepted;        // the transaction that may commit now; kNoTransaction if none
  uint64_t committed;       // the last one that did
  uint64_t first_rejected;  // valid while closed
  uint64_t need_instances;  // the largest need seen since it closed
  uint64_t need_rows;
  uint32_t epoch;
  uint32_t closed;
};
static_assert(sizeof(Gate) == 48);
constexpr uint64_t kNoTransaction = ~0ull;

/// Counts that live on the device.
struct Counts {
  uint32_t rows;          // N: live rows are [0, N)
  uint32_t visible;       // of the frame in flight
  uint64_t instances;     // of the frame in flight; the true need, also when it overflows
  uint32_t dead;          // of the last refinement
  uint32_t added;         // rows that the refinement in flight appends
  uint64_t skipped_rows;  // rows whose gradient was not finite, over the run
  uint32_t free;          // of the rows: places without a Gaussian, whose quaternion is zero
  uint32_t candidates;    // MRNF: rows above the growth threshold at the last refinement
  uint32_t born;          // MRNF: children of the last refinement
  uint32_t reserved;
};
static_assert(sizeof(Counts) == 48);

/// What MRNF measures of the scene (TRAINING.md 1.5). World units.
struct SceneBounds {
  float centre[3], half_extent[3];  // of the 80 % percentile box of the means
  float median_size;                // 2 x the middle half extent: the unit of the means' rate
  float median_extent;              // median of exp(mean log scale)
  float hull_centre[3];             // of the training cameras
  float hull_radius;                // 0: no hull
  uint32_t valid;                   // 0: the box is too small to be one
  uint32_t reserved[3];
};
static_assert(sizeof(SceneBounds) == 64);

/// What one MRNF refinement counts on its way.
struct MrnfCounts {
  uint32_t live;      // rows with a Gaussian, those that it removes left out
  uint32_t free;      // places for children, removed rows included
  uint32_t pruned;    // removed rows
  uint32_t weighted;  // live rows that were seen
  uint32_t edges;     // of those, with an edge score
  uint32_t replaced;  // parents drawn in place of removed rows
  uint32_t grown;     // parents drawn to grow
  uint32_t candidates;
};
static_assert(sizeof(MrnfCounts) == 32);

/// What a committed step reports.
struct StepMetrics {
  uint64_t transaction;
  uint32_t epoch, step;
  float loss, l1, ssim, mse;
  uint32_t rows;  // Gaussians: free rows are left out
  uint32_t visible;
  uint64_t instances;
};
static_assert(sizeof(StepMetrics) == 48);

/// One buffer: what the host reads late, in one ticket.
struct Control {
  Gate gate;
  Counts counts;
  StepMetrics metrics;
  SceneBounds bounds;
};
static_assert(sizeof(Control) == 208);

/// A Gaussian as the blend kernels see it (48 B).
struct Projected {
  float x, y;     // centre, px
  float a, b, c;  // factor of the conic: p = ((a dx + b dy)^2 + (c dy)^2) / 2
  float opacity;
  float red, green, blue;    // clamped to [0, kMaxBlendColor]
  float depth;               // world units
  float extent_x, extent_y;  // half extents of the contributing ellipse, px
};
static_assert(sizeof(Projected) == 48);

/// The 2D gradient of one instance (one Gaussian in one tile), 48 B. With y = (a dx + b dy, c dy)
/// and h = dLoss/dp, the shape's part is the half moments sum h y y^T / 2: in these coordinates
/// they are of one magnitude, however thin the Gaussian, so that nothing cancels on the way back.
struct InstanceGradient {
  float d_x, d_y;
  float half_yy11, half_yy12, half_yy22;
  float d_opacity;
  float d_red, d_green, d_blue;
  float weight;        // sum over pixels of the blend weight
  float weight_error;  // sum of weight x error map
  float d_depth;       // or, in a frame with an edge map, sum of weight x edge map
};
static_assert(sizeof(InstanceGradient) == 48);

/// One pass of a frame whose instances do not all fit: whole tiles, or a depth slice of one tile.
struct Band {
  uint32_t first_tile, last_tile;  // [first, last)
  uint32_t rank;                   // of the slice's first instance in its tile, by depth; else 0
  uint32_t instances;
  uint32_t is_front, is_back;  // 1, 1 for whole tiles
  uint32_t mirror;             // the band that the backward pass takes at this place
};
constexpr uint32_t kMaxBands = 1024;
struct BandTable {
  uint32_t n_needed;  // may be more than kMaxBands; the rest is not listed
  Band bands[kMaxBands];
};

// ---------------------------------------------------------------------------------------------
// Parameter blocks. Bindings are listed in each kernel's head.
// ---------------------------------------------------------------------------------------------
struct FrameParams {
  uint32_t width, height;  // px
  uint32_t tiles_x, tiles_y;
  uint64_t capacity;       // instances that fit
  uint32_t sh_rest_lanes;  // lanes stored in the SH-rest group: 0, 9, 24, 45
  uint32_t write_depth;    // blend_forward: also depth
  uint32_t n_bands;        // 1: the whole frame at once
  uint32_t band;
  uint32_t backward;  // 1: in the backward pass, where a tile's slices come back to front
  uint32_t inputs;    // what is bound that need not be
};
static_assert(sizeof(FrameParams) == 48);
constexpr uint32_t kFrameHasBackground = 1;  // a background image
constexpr uint32_t kFrameHasErrorMap = 2;
constexpr uint32_t kFrameHasEdgeMap = 4;
constexpr uint32_t kFrameHasAlphaGradient = 8;  // of the frame's opacity

struct DecideParams {
  uint64_t capacity;  // instances
  uint64_t row_capacity;
  uint32_t check_rows;  // 1: the transaction may add rows (refine)
  uint32_t n_bands;     // gate_decide_bands: bands that are recorded
};

struct ReopenParams {
  uint32_t epoch;
  uint32_t reserved;
};

struct LossParams {
  uint32_t width, height;
  uint32_t inputs;  // kLoss...: what is bound that need not be, and what is asked for
  uint32_t reserved;
};
constexpr uint32_t kLossHasWeight = 1;      // of each pixel; else those far enough from the border
constexpr uint32_t kLossHasRaw = 2;         // SSIM's contrast and structure are of another image
constexpr uint32_t kLossRawGradient = 4;    // with kLossHasRaw: the gradient to that other image
constexpr uint32_t kLossHasMask = 8;        // of the photograph
constexpr uint32_t kLossHasStructure = 16;  // ridge map of the photograph
constexpr uint32_t kLossHasEdges = 32;      // the edge loss counts
constexpr uint32_t kLossHasPenalty = 64;    // the opacity penalty counts

/// What the loss of a step sums up, on the device.
struct LossTotals {
  float base;         // sum of the pixels' weights without structure: the loss's denominator
  float weight;       // sum of the pixels' weights
  float edge_weight;  // sum of the weights of the edge loss
  float edge;         // the edge loss, weighted
  float penalty;      // the opacity penalty, weighted
  float reserved[3];
};
static_assert(sizeof(LossTotals) == 32);
constexpr float kStructureMax = 4.0f;    // a ridge map's most
constexpr float kStructureUnit = 63.0f;  // it is stored as round(kStructureUnit S) in a byte

struct BackwardParams {
  uint32_t sh_rest_lanes;
  uint32_t fused_adam;  // 1: apply Adam in place; 0: write to the gradient groups
  uint32_t statistics;  // kStatistics...
  uint32_t reserved;
};
constexpr uint32_t kStatisticsOn = 1;     // kept
constexpr uint32_t kStatisticsEdges = 2;  // records hold edge sums in place of d_depth

struct RowsParams {
  uint32_t sh_rest_lanes;
  uint32_t mode;
};

/// commit_step's mode: what the transaction was.
enum class CommitMode : uint32_t {
  Step = 0,    // reports its metrics
  Refine = 1,  // counts.added rows become live
  Other = 2,   // neither
};

struct GatherRowsParams {
  uint32_t lanes;
  uint32_t reserved;
};

}  // namespace millrace
